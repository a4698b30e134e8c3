"""Images, captions and splits, listed by the files of COCO and Karpathy."""

import os
import pathlib
from collections.abc import Sequence

import tensorflow as tf

from keras_caption.data.coco_objects import captions_of_tfds, read_tfds
from keras_caption.data.matching import join_listings
from keras_caption.formats.coco import list_coco_images, read_sizes
from keras_caption.formats.karpathy import is_karpathy, list_karpathy_images
from keras_caption.formats.listed_image import ListedImage

TFDS_NAME = "coco_captions"


def list_images(paths: Sequence[str | os.PathLike]) -> dict[str, list[ListedImage]]:
    """Lists the images of caption files by split.

    Args:
        paths: Sequence of paths of JSON files. A file in Karpathy's schema (COCO,
            Flickr8k, Flickr30k) gives splits and captions; COCO's files beside it give
            only the sizes of images. COCO's files alone give captions too: every other
            image of a file with `val` in its name is for validation, the rest for
            test; all other files are for training. A file without annotations, such as
            that of COCO's test server, lists images without captions, for test.
            `"coco_captions"` is not a file but COCO with Karpathy's splits, downloaded
            by TFDS.

    Returns:
        dict from split to a list of `ListedImage`. An image without captions in a file
        with captions has a `problem` and is skipped when data are prepared.

    Raises:
        InputError: If a file does not follow its format, or an image or a photo is
            listed twice.
    """
    files = [pathlib.Path(path) for path in paths if path != TFDS_NAME]
    karpathys = [path for path in files if is_karpathy(path)]
    cocos = [path for path in files if path not in karpathys]
    if karpathys:
        sizes = {}
        for path in cocos:
            sizes |= read_sizes(path)
        listings = {path: list_karpathy_images(path, sizes) for path in karpathys}
    else:
        listings = {path: list_coco_images(path) for path in cocos}
    if TFDS_NAME in paths:
        listings[TFDS_NAME] = {
            split: list(map(_listed_by_tfds, examples))
            for split, examples in read_tfds().items()
        }
    return join_listings(listings, lambda image: f"image {image.image_id}")


def _listed_by_tfds(example):
    """Makes a `ListedImage` of an example of TFDS's `coco_captions`."""
    height, width, _ = tf.io.extract_jpeg_shape(example["image"]).numpy()
    return ListedImage(
        int(example["image/id"]),
        example["image/filename"].decode(),
        captions_of_tfds(example),
        (int(width), int(height)),
    )
