"""COCO's annotation files: captions, lists of images, and instances."""

import os
import pathlib
from typing import Annotated, Literal, NotRequired

import numpy as np
from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.fields import (
    Caption,
    ImageId,
    PhotoName,
    Records,
    refuse_repeats,
    with_words,
)
from keras_caption.formats.json_files import read_json
from keras_caption.formats.listings import ListedImage
from keras_caption.formats.rejected_captions import RejectedCaptions
from keras_caption.formats.skipped import report

# Ids of annotations in COCO's official train files whose boxes have no height.
FLAT_OFFICIAL_BOXES = (918, 2206849)

# Pixels by which a box may exceed the image: COCO rounds to hundredths.
TOLERANCE = 1.0

Pixels = Annotated[int, Field(gt=0, lt=2**31)]


# Whether an annotation does not count.
Mark = bool | Annotated[int, Field(ge=0, le=1)] | None


class Image(TypedDict):
    id: ImageId


class SizedImage(Image):
    width: Pixels
    height: Pixels


class MaybeSizedImage(Image):
    width: NotRequired[Pixels]
    height: NotRequired[Pixels]


class NamedImage(MaybeSizedImage):
    file_name: PhotoName


class ImageCaption(TypedDict):
    image_id: ImageId
    caption: Caption
    is_rejected: NotRequired[Mark]
    is_precanned: NotRequired[Mark]
    is_spam: NotRequired[Mark]


class ImageObject(TypedDict):
    id: NotRequired[int]
    image_id: ImageId
    category_id: int
    bbox: Annotated[list[FiniteFloat], Field(min_length=4, max_length=4)]
    iscrowd: NotRequired[Mark]
    ignore: NotRequired[Mark]


class Category(TypedDict):
    id: int


class CaptionsFile(TypedDict):
    images: Records[Image]
    annotations: Records[ImageCaption]


class ListingFile(TypedDict):
    images: Annotated[Records[NamedImage], Field(min_length=1)]
    annotations: NotRequired[Records[ImageCaption]]


class DomainImage(Image):
    domain: NotRequired[Literal["in-domain", "near-domain", "out-domain"]]


class DomainsFile(TypedDict):
    images: Records[DomainImage]


class SizesFile(TypedDict):
    images: Records[MaybeSizedImage]


class InstancesFile(TypedDict):
    images: Records[SizedImage]
    annotations: Records[ImageObject]
    categories: Records[Category]


def read_captions(path: str | os.PathLike) -> dict[int | str, list[str]]:
    """Reads the captions of one COCO captions file.

    Captions without words, or marked as rejected, are skipped; how many is printed.

    Args:
        path: Path of a JSON file with `images` (`id`) and `annotations` (`image_id`,
            `caption`).

    Returns:
        dict from image id to a list of captions, in the order of the file.

    Raises:
        InputError: If the file does not follow the format, lists an image twice, or
            has a caption of an image that it does not list.
    """
    captions, skipped = group_captions(path, read_json(path, CaptionsFile))
    report(skipped)
    return captions


def group_captions(
    path: str | os.PathLike, content: CaptionsFile
) -> tuple[dict[int | str, list[str]], list[str]]:
    """Groups the captions in the content of a captions file by image id.

    Captions that are marked as rejected do not count, see `RejectedCaptions`.

    Returns:
        dict from image id to a list of captions; and a list of sentences about
        captions that are skipped.
    """
    captions = empty_lists(path, content["images"])
    skipped: list[str] = []
    rejected = RejectedCaptions(path)
    for number, annotation in enumerate(content["annotations"]):
        image_captions = list_for(path, captions, number, annotation)
        if not rejected.counts(annotation):
            continue
        where = f"{path}: annotations[{number}] of image {annotation['image_id']}"
        image_captions += with_words([(where, annotation["caption"])], skipped)
    rejected.report()
    return captions, skipped


def empty_lists(path: str | os.PathLike, images: list[Image]) -> dict[int | str, list]:
    """Makes an empty list for each image of a file; refuses repeated images."""
    refuse_repeats(path, "images[].id", (image["id"] for image in images))
    return {image["id"]: [] for image in images}


def list_for(
    path: str | os.PathLike,
    lists: dict[int | str, list],
    number: int,
    annotation: ImageCaption | ImageObject,
) -> list:
    """Returns the list, from `empty_lists`, of the image of an annotation."""
    image_id = annotation["image_id"]
    if image_id not in lists:
        raise InputError(
            f"{path}: annotations[{number}] belongs to image {image_id}, which is not "
            "among the file's images."
        )
    return lists[image_id]


def list_coco_images(
    path: pathlib.Path,
) -> tuple[list[ListedImage], bool, list[str]]:
    """Lists the images of one COCO captions file.

    Args:
        path: `pathlib.Path` of the file.

    Returns:
        A list of `ListedImage`; whether the file has captions, its `annotations`,
        unlike that of COCO's test server; and a list of sentences about captions that
        are skipped. An image without captions in a file with `annotations` has a
        `problem`.

    Raises:
        InputError: See `read_captions`; also if two images have the same file name.
    """
    content = read_json(path, ListingFile)
    images = content["images"]
    refuse_repeats(path, "images[].file_name", (i["file_name"] for i in images))
    if "annotations" not in content:
        empty_lists(path, images)
        return [listed_image(image, []) for image in images], False, []
    captions, skipped = group_captions(path, content)
    listed = [listed_image(image, captions[image["id"]], path) for image in images]
    return listed, True, skipped


def listed_image(
    image: NamedImage, captions: list[str], path: pathlib.Path | None = None
) -> ListedImage:
    """Makes a `ListedImage`; `path` is the path of a file with captions."""
    problem = None
    if path and not captions:
        problem = f"{path}: image {image['id']} has no captions."
    return ListedImage(
        image["id"], image["file_name"], captions, size_of(image), problem
    )


def size_of(image: MaybeSizedImage) -> tuple[int, int] | None:
    """Returns width and height of an image in pixels, or `None` if unknown."""
    if "width" in image and "height" in image:
        return image["width"], image["height"]
    return None


def read_sizes(path: str | os.PathLike) -> dict[int | str, tuple[int, int] | None]:
    """Reads the sizes of the images of a file that lists images in COCO's format.

    Returns:
        dict from image id to width and height in pixels, or `None` if the file lacks
        them.

    Raises:
        InputError: If the file does not follow the format.
    """
    images = read_json(path, SizesFile)["images"]
    return {image["id"]: size_of(image) for image in images}


def read_names(path: str | os.PathLike) -> dict[int | str, str]:
    """Reads the names of the photos of the images of a file in COCO's format.

    Returns:
        dict from image id to str.

    Raises:
        InputError: If the file does not follow the format.
    """
    return {
        image["id"]: image["file_name"]
        for image in read_json(path, ListingFile)["images"]
    }


def read_domains(path: str | os.PathLike) -> dict[int | str, str]:
    """Reads the domains of the images of nocaps, which its validation file has.

    Returns:
        dict from image id to `"in-domain"`, `"near-domain"` or `"out-domain"`, which
        lacks images without a domain, as those of COCO are.

    Raises:
        InputError: If the file does not follow the format.
    """
    images = read_json(path, DomainsFile)["images"]
    return {image["id"]: image["domain"] for image in images if "domain" in image}


def read_instances(
    path: str | os.PathLike,
) -> tuple[list[int], dict[int | str, list[tuple[int, tuple[float, ...]]]]]:
    """Reads the objects of one COCO instances file.

    Crowd regions (`iscrowd`) and objects to `ignore` are skipped.

    Args:
        path: Path of a JSON file with `images` (`id`, `width`, `height`),
            `annotations` (`image_id`, `category_id`, `bbox` as x, y, width, height in
            pixels) and `categories` (`id`).

    Returns:
        The category ids in ascending order, and a dict from image id to a list of
        (category id, box), the box as x1, y1, x2, y2 divided by the image's width
        and height.

    Raises:
        InputError: If the file does not follow the format; if a box is not finite, is
            empty, lies outside its image, or has an unknown image or category; or if
            an image or a category is listed twice.
    """
    content = read_json(path, InstancesFile)
    categories = [category["id"] for category in content["categories"]]
    refuse_repeats(path, "categories[].id", categories)
    category_ids = set(categories)
    sizes = {i["id"]: (i["width"], i["height"]) for i in content["images"]}
    objects = empty_lists(path, content["images"])
    for number, annotation in enumerate(content["annotations"]):
        is_left_out = annotation.get("iscrowd") or annotation.get("ignore")
        if is_left_out or annotation.get("id") in FLAT_OFFICIAL_BOXES:
            continue
        image_objects = list_for(path, objects, number, annotation)
        category, image_id = annotation["category_id"], annotation["image_id"]
        where = f"{path}: annotations[{number}] of image {image_id}"
        if category not in category_ids:
            raise InputError(f"{where}: there is no category {category}.")
        box = normalize_box(annotation["bbox"], *sizes[image_id], where)
        image_objects.append((category, box))
    return sorted(categories), objects


def normalize_box(
    bbox: list[float], width: int, height: int, where: str
) -> tuple[float, ...]:
    """Converts x, y, width, height in pixels to x1, y1, x2, y2 from 0 to 1.

    Raises:
        InputError: If the box is empty or lies outside the image.
    """
    x1, y1, x2, y2 = bbox[0], bbox[1], bbox[0] + bbox[2], bbox[1] + bbox[3]
    if min(x1, y1) < -TOLERANCE or x2 > width + TOLERANCE or y2 > height + TOLERANCE:
        raise InputError(
            f"{where}: the box {bbox} (x, y, width, height) exceeds the image "
            f"of {width} x {height}."
        )
    corners = np.clip(
        np.divide([x1, y1, x2, y2], [width, height, width, height]), 0.0, 1.0
    ).astype("float32")
    if not (corners[:2] < corners[2:]).all():
        raise InputError(
            f"{where}: the box {bbox} (x, y, width, height) is empty within the image "
            f"of {width} x {height}."
        )
    return tuple(corners.tolist())
