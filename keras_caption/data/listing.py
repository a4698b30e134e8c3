"""Images, captions and splits, as the files of COCO and Karpathy list them."""

import pathlib

import tensorflow as tf

from keras_caption.data.coco_objects import captions_of_tfds, read_tfds
from keras_caption.errors import InputError
from keras_caption.formats.coco import list_coco_images, read_sizes
from keras_caption.formats.karpathy import SPLITS, is_karpathy, list_karpathy_images
from keras_caption.formats.listed_image import ListedImage

TFDS_NAME = "coco_captions"


def list_images(paths):
    """Lists the images of caption files, by split.

    Args:
        paths: JSON files. One in Karpathy's schema (COCO, Flickr8k, Flickr30k) has
            splits and captions, and COCO's files beside it only give the sizes of
            images. COCO's alone have captions too: of those with `val` in their name
            every other image is for validation, the rest for test; all other files
            are for training. A file without annotations, as that of COCO's test
            server, lists images without captions, for test. `"coco_captions"` is no
            file but COCO with Karpathy's splits as TFDS downloads it.

    Returns:
        dict from split to a list of `ListedImage`. One without captions in a file
        that has captions has a `problem`, and is skipped by all that prepare data.

    Raises:
        InputError: If a file is wrong, or an image or a photo is listed twice.
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
            split: list(map(_of_tfds, found)) for split, found in read_tfds().items()
        }
    images, where = {split: [] for split in SPLITS}, {}
    for path, listing in listings.items():
        for split, listed in listing.items():
            images[split] += listed
            for image in listed:
                if where.setdefault(image.image_id, path) != path:
                    raise InputError(
                        f"{path}: image {image.image_id} is listed in "
                        f"{where[image.image_id]} too."
                    )
    return images


def _of_tfds(example):
    """`ListedImage` of an example of TFDS's `coco_captions`."""
    height, width, _ = tf.io.extract_jpeg_shape(example["image"]).numpy()
    return ListedImage(
        int(example["image/id"]),
        example["image/filename"].decode(),
        captions_of_tfds(example),
        (int(width), int(height)),
    )
