"""Images, captions and splits, as the files of COCO and Karpathy list them."""

import dataclasses
import pathlib

import tensorflow as tf

from keras_caption.data.coco import SPLITS, captions_of, read_json, split_of
from keras_caption.data.coco_objects import captions_of_tfds, read_tfds
from keras_caption.errors import InputError
from keras_caption.text import split_words

TFDS_NAME = "coco_captions"


@dataclasses.dataclass(frozen=True)
class ListedImage:
    """An image of a caption file.

    Attributes:
        image_id: int.
        file_name: str.
        captions: List of str.
        size: Width and height in pixels, or `None` where no file tells.
    """

    image_id: int
    file_name: str
    captions: list
    size: tuple | None = None


def list_images(paths):
    """The images of caption files, by split.

    Args:
        paths: JSON files. One in Karpathy's schema (COCO, Flickr8k, Flickr30k) has
            splits and captions, and COCO's files beside it only tell the sizes of
            images. COCO's alone have captions too: of those with `val` in their name
            every other image is for validation, the rest for test; all other files
            are for training. A file without annotations, as that of COCO's test
            server, lists images without captions, for test. `"coco_captions"` is no
            file but COCO with Karpathy's splits as TFDS downloads it.

    Returns:
        dict from split to a list of `ListedImage`.

    Raises:
        InputError: If a file is wrong, or an image is listed twice.
    """
    contents = {
        pathlib.Path(path): read_json(path, "images")
        for path in paths
        if path != TFDS_NAME
    }
    karpathys = {
        path: content
        for path, content in contents.items()
        if content["images"] and "sentences" in content["images"][0]
    }
    sizes = {
        image["id"]: (image["width"], image["height"])
        for path, content in contents.items()
        if path not in karpathys
        for image in content["images"]
    }
    images = {split: [] for split in SPLITS}
    if TFDS_NAME in paths:
        images = {k: list(map(_of_tfds, found)) for k, found in read_tfds().items()}
    for path, content in contents.items():
        if path in karpathys:
            for split, image in _read_karpathy(path, content, sizes):
                images[split].append(image)
        elif not karpathys:
            for split, image in _read_coco(path, content, sizes):
                images[split].append(image)
    seen = set()
    for of_split in images.values():
        for image in of_split:
            if image.image_id in seen:
                raise InputError(f"Image {image.image_id} is listed twice.")
            seen.add(image.image_id)
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


def _read_karpathy(path, content, sizes):
    """Split and `ListedImage` of every image of Karpathy's JSON."""
    for number, image in enumerate(content["images"]):
        split = split_of(image)
        image_id = image.get("cocoid", image.get("imgid"))
        captions = [s.get("raw", "").strip() for s in image.get("sentences", ())]
        problems = {
            "an `imgid` or a `cocoid`": image_id is not None,
            "a `split` of train, restval, val or test": split in SPLITS,
            "a `filename`": "filename" in image,
            "`sentences`, none of them empty": captions
            and all(map(split_words, captions)),
        }
        for needed, there in problems.items():
            if not there:
                raise InputError(f"{path}: image number {number} needs {needed}.")
        size = sizes.get(image_id)
        yield split, ListedImage(image_id, image["filename"], captions, size)


def _read_coco(path, content, sizes):
    """Split and `ListedImage` of every image of one of COCO's captions files."""
    captions = captions_of(content, path) if "annotations" in content else None
    for number, image in enumerate(content["images"]):
        image_id, of_image = image["id"], []
        if captions is None:
            split = "test"
        else:
            split = ("val", "test")[number % 2] if "val" in path.name else "train"
            of_image = captions[image_id]
            if not of_image:
                raise InputError(f"{path}: image {image_id} has no captions.")
        size = sizes[image_id]
        yield split, ListedImage(image_id, image["file_name"], of_image, size)
