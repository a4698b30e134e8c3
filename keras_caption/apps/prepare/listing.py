"""Images, captions and splits, listed by the files of COCO and Karpathy."""

import os
import pathlib
from collections.abc import Sequence

import tensorflow as tf

from keras_caption.apps.prepare.matching import join_listings
from keras_caption.apps.prepare.own_captions import SUFFIXES as OWN
from keras_caption.base.errors import InputError
from keras_caption.datasets.coco_objects import captions_of_tfds, read_tfds
from keras_caption.formats.coco import list_coco_images, read_sizes
from keras_caption.formats.karpathy import is_karpathy, list_karpathy_images
from keras_caption.formats.listings import ListedFile, ListedImage
from keras_caption.formats.splits import given_splits, splits_in, unclear
from keras_caption.formats.suffixes import unpacked_suffix

TFDS_NAME = "coco_captions"


def list_images(
    paths: Sequence[str | os.PathLike], strict: bool = False
) -> dict[str, list[ListedImage]]:
    """Lists the images of caption files by split, and prints the use of each file.

    Args:
        paths: Sequence of paths of JSON files. A file in Karpathy's schema (COCO,
            Flickr8k, Flickr30k) provides splits and captions; COCO's files beside it
            provide only the sizes of images. COCO's files alone provide captions too.
            Their splits follow from their names, see `split_coco_files`, unless they
            are given: `"train=PATH"`, `"val=PATH"`, `"test=PATH"`. A file without
            annotations, such as that of COCO's test server, lists images without
            captions, for test. `"coco_captions"` is not a file but COCO with Karpathy's
            splits, downloaded by TFDS.
        strict: bool, whether to raise an error for a caption without words instead of
            skipping it. Defaults to `False`.

    Returns:
        dict from split to a list of `ListedImage`. An image without captions in a file
        with captions has a `problem` and is skipped when data are prepared.

    Raises:
        InputError: If a file does not follow its format, an image or a photo is listed
            twice, or the split of a file is unclear.
    """
    files = given_splits(path for path in paths if path != TFDS_NAME)
    for path in files:
        if unpacked_suffix(path) != ".json":
            raise InputError(
                f"{path} should be .json, of COCO's or Karpathy's format; with "
                f"--photos, captions may be {', '.join(OWN)} or a folder of text files "
                "too."
            )
    karpathys = [path for path in files if is_karpathy(path)]
    for path, split in files.items() if karpathys else ():
        if split:
            raise InputError(
                f"{path} cannot be for {split} only: {karpathys[0]} says the split of "
                "each image."
            )
    cocos = [path for path in files if path not in karpathys]
    if karpathys:
        sizes: dict[int | str, tuple[int, int] | None] = {}
        for path in cocos:
            sizes |= read_sizes(path)
            print(f"{path}: only the sizes of its images")
        listings = {path: list_karpathy_images(path, sizes) for path in karpathys}
    else:
        listings = split_coco_files(files)
    if TFDS_NAME in paths:
        listings[pathlib.Path(TFDS_NAME)] = ListedFile(
            {
                split: list(map(_listed_by_tfds, examples))
                for split, examples in read_tfds().items()
            }
        )
    return join_listings(listings, "image", lambda i: f"image {i.image_id}", strict)


def split_coco_files(
    files: dict[pathlib.Path, str | None],
) -> dict[pathlib.Path, ListedFile]:
    """Lists the images of COCO's files by the split that is given or named.

    The split of a file is a word of its name, see `splits_in`. If no file is for test,
    every other image of the files with `val` is: COCO's captions of test are not
    published.

    Args:
        files: dict from path to the split that a user gave, or `None`.

    Raises:
        InputError: If a name has several splits or none, or a file without captions is
            given for train or val.
    """
    read = {path: list_coco_images(path) for path in files}
    uses = {}
    for path, split in files.items():
        named = splits_in(path.name)
        has_captions = read[path][1]
        if not has_captions and split in ("train", "val"):
            raise InputError(f"{path} cannot be for {split}: it has no captions.")
        if split or not has_captions:
            uses[path] = split or "test"
        elif len(named) == 1:
            [uses[path]] = named
        elif named:
            raise unclear(path, f"has {' and '.join(named)} in its name")
        else:
            raise unclear(path, "has no split as a word of its name")
    listings = {}
    for path, (images, _, skipped) in read.items():
        splits = {uses[path]: images}
        if uses[path] == "val" and not files[path] and "test" not in uses.values():
            splits = {"val": images[::2], "test": images[1::2]}
        listings[path] = ListedFile(splits, skipped)
    return listings


def _listed_by_tfds(example):
    """Makes a `ListedImage` of an example of TFDS's `coco_captions`."""
    height, width, _ = tf.io.extract_jpeg_shape(example["image"]).numpy()
    return ListedImage(
        int(example["image/id"]),
        example["image/filename"].decode(),
        captions_of_tfds(example),
        (int(width), int(height)),
    )
