"""Karpathy's JSON: the splits and captions of COCO, Flickr8k and Flickr30k."""

import os
import pathlib
from typing import Annotated, Literal, NotRequired, overload

from pydantic import Field
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.fields import (
    Caption,
    ImageId,
    ImageNumber,
    PhotoName,
    PhotoPath,
    Records,
    refuse_repeats,
    with_words,
)
from keras_caption.formats.json_files import read_json
from keras_caption.formats.listings import ListedFile, ListedImage
from keras_caption.formats.splits import SPLITS

Split = Literal["train", "restval", "val", "test"]


class SplitImage(TypedDict):
    cocoid: ImageNumber
    split: Split
    filename: NotRequired[PhotoName]
    filepath: NotRequired[PhotoPath]


class Sentence(TypedDict):
    raw: Caption


class CaptionedImage(TypedDict):
    cocoid: NotRequired[ImageId]
    imgid: NotRequired[ImageId]
    split: Split
    filename: PhotoName
    filepath: NotRequired[PhotoPath]
    sentences: list[Sentence]


class SplitFile(TypedDict):
    images: Annotated[Records[SplitImage], Field(min_length=1)]


class CaptionedFile(TypedDict):
    images: Annotated[Records[CaptionedImage], Field(min_length=1)]


class AnyImage(TypedDict):
    split: NotRequired[object]
    sentences: NotRequired[object]


class AnyFile(TypedDict):
    images: Records[AnyImage]


def is_karpathy(path: str | os.PathLike) -> bool:
    """Returns whether a file of images has Karpathy's schema, not COCO's.

    Raises:
        InputError: If it has neither.
    """
    content = read_json(path, AnyFile | list[object])
    if isinstance(content, list):
        raise InputError(
            f"{path} is a list: JSON of captions is COCO's or Karpathy's, with "
            "`images`, and rows of photos and captions are JSON Lines, .jsonl."
        )
    return any(map(len, content["images"]))


def read_split(path: str | os.PathLike) -> dict[str, list[int]]:
    """Reads Karpathy's split of the images of COCO; `restval` counts as `train`.

    Returns:
        dict from `"train"`, `"val"`, `"test"` to a list of image ids.

    Raises:
        InputError: If the file does not follow the schema, or lists an image or a
            photo twice.
    """
    images = read_json(path, SplitFile)["images"]
    refuse_listed_twice(path, images)
    splits: dict[str, list[int]] = {split: [] for split in SPLITS}
    for image in images:
        splits[split_of(image)].append(image["cocoid"])
    return splits


def list_karpathy_images(
    path: str | os.PathLike, sizes: dict[int | str, tuple[int, int] | None]
) -> ListedFile:
    """Lists the images of a file in Karpathy's schema by split.

    Args:
        path: Path of the file. The id of an image is its `cocoid` or, without one,
            its `imgid`.
        sizes: dict from image id to width and height in pixels, or `None`.

    Returns:
        `ListedFile`. An image without captions has a `problem`.

    Raises:
        InputError: If the file does not follow the schema, has an image without an
            id, or lists an image or a photo twice.
    """
    images = read_json(path, CaptionedFile)["images"]
    refuse_listed_twice(path, images)
    listed: dict[str, list[ListedImage]] = {split: [] for split in SPLITS}
    skipped: list[str] = []
    for number, image in enumerate(images):
        image_id = image.get("cocoid", image.get("imgid"))
        if image_id is None:
            raise InputError(
                f"{path}: images[{number}] needs an `imgid` or a `cocoid`."
            )
        where = f"{path}: images[{number}].sentences"
        captions = with_words(
            ((f"{where}[{n}]", s["raw"]) for n, s in enumerate(image["sentences"])),
            skipped,
        )
        problem = None if captions else f"{path}: image {image_id} has no captions."
        listed[split_of(image)].append(
            ListedImage(
                image_id, photo_of(image), captions, sizes.get(image_id), problem
            )
        )
    return ListedFile(listed, skipped)


def split_of(image: SplitImage | CaptionedImage) -> str:
    """Returns the split of an image; `restval` counts as `train`."""
    return {"restval": "train"}.get(image["split"], image["split"])


@overload
def photo_of(image: CaptionedImage) -> str: ...
@overload
def photo_of(image: SplitImage) -> str | None: ...
def photo_of(image: SplitImage | CaptionedImage) -> str | None:
    """Returns the path of an image's photo in the folder of photos, or `None`."""
    if "filename" not in image:
        return None
    return str(pathlib.PurePath(image.get("filepath", ""), image["filename"]))


def refuse_listed_twice(
    path: str | os.PathLike, images: list[SplitImage] | list[CaptionedImage]
) -> None:
    """Refuses two images with the same id or photo, in one split or in two."""
    for key in ("cocoid", "imgid"):
        refuse_repeats(path, f"images[].{key}", (image.get(key) for image in images))
    refuse_repeats(path, "images[].filename", map(photo_of, images))
