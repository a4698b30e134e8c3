"""COCO's annotation files: captions, objects, and Karpathy's split."""

import dataclasses
import json
import math
import pathlib

import numpy as np

from keras_caption.errors import InputError
from keras_caption.text import split_words

SPLITS = ("train", "val", "test")

# Annotations of COCO's official train files whose boxes have no height.
FLAT_OFFICIAL_BOXES = (918, 2206849)

# How far a box may reach over the border, in pixels: COCO rounds to hundredths.
TOLERANCE = 1.0


@dataclasses.dataclass(frozen=True)
class CocoFiles:
    """The files that a captioning dataset is read from."""

    captions: tuple[pathlib.Path, ...]
    instances: tuple[pathlib.Path, ...]
    split: pathlib.Path

    @classmethod
    def find(cls, folder):
        """The annotation files below a folder.

        Args:
            folder: Holds, at any depth, `captions_*.json` and `instances_*.json`
                in COCO's format, and one Karpathy split, `dataset_*.json` or
                `*split*.json`.

        Raises:
            InputError: If the folder or one of the kinds of files is missing.
        """
        folder = pathlib.Path(folder)
        if not folder.is_dir():
            raise InputError(f"There is no folder {folder} to read COCO files from.")
        found = {
            "captions_*.json": sorted(folder.rglob("captions_*.json")),
            "instances_*.json": sorted(folder.rglob("instances_*.json")),
            "dataset_*.json or *split*.json": sorted(
                {*folder.rglob("dataset_*.json"), *folder.rglob("*split*.json")}
            ),
        }
        for pattern, paths in found.items():
            if not paths:
                raise InputError(f"There is no {pattern} in {folder} or below.")
        captions, instances, splits = found.values()
        if len(splits) > 1:
            names = ", ".join(map(str, splits))
            raise InputError(f"There is more than one split file: {names}.")
        return cls(tuple(captions), tuple(instances), splits[0])


def read_json(path, *required):
    """A JSON file's object, which must have the `required` keys.

    Raises:
        InputError: If it is missing, is cut short or lacks a key.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} is not valid JSON, or is cut short: {error}"
        ) from None
    for key in required:
        if not isinstance(content, dict) or key not in content:
            raise InputError(f"{path} has no {key!r}, as a file of its kind should.")
    return content


def read_captions(path):
    """Captions of one COCO captions file.

    Args:
        path: JSON with `images` and `annotations` (`image_id`, `caption`).

    Returns:
        dict from image id to a list of captions, in the order of the file.

    Raises:
        InputError: If a caption has no image, or no words.
    """
    return captions_of(read_json(path, "images", "annotations"), path)


def captions_of(content, path):
    """As `read_captions`, of a file that has been read."""
    captions = {image["id"]: [] for image in content["images"]}
    for annotation in content["annotations"]:
        image_id, text = annotation["image_id"], annotation["caption"]
        if image_id not in captions:
            raise InputError(
                f"{path}: caption {annotation['id']} belongs to image {image_id}, "
                "which is not among the file's images."
            )
        if not split_words(text):
            raise InputError(
                f"{path}: caption {annotation['id']} of image {image_id} is empty: "
                f"{text!r}."
            )
        captions[image_id].append(text.strip())
    return captions


def read_instances(path):
    """Objects of one COCO instances file.

    Regions of crowds (`iscrowd`) are left out.

    Args:
        path: JSON with `images`, `annotations` (`image_id`, `category_id`, `bbox` as
            x, y, width, height in pixels) and `categories`.

    Returns:
        The category ids in rising order, and dict from image id to a list of
        (category id, box), the box as x1, y1, x2, y2 divided by the image's width
        and height.

    Raises:
        InputError: If a box is not finite, is empty or lies outside its image, or
            its image or category is unknown.
    """
    content = read_json(path, "images", "annotations", "categories")
    sizes = {i["id"]: (i["width"], i["height"]) for i in content["images"]}
    categories = sorted(c["id"] for c in content["categories"])
    objects = {image_id: [] for image_id in sizes}
    for annotation in content["annotations"]:
        if annotation.get("iscrowd") or annotation["id"] in FLAT_OFFICIAL_BOXES:
            continue
        image_id, category = annotation["image_id"], annotation["category_id"]
        where = f"{path}: object {annotation['id']} of image {image_id}"
        if image_id not in objects:
            raise InputError(f"{where}: the image is not among the file's images.")
        if category not in categories:
            raise InputError(f"{where}: there is no category {category}.")
        box = _normalize_box(annotation["bbox"], *sizes[image_id], where)
        objects[image_id].append((category, box))
    return categories, objects


def _normalize_box(bbox, width, height, where):
    if len(bbox) != 4 or not all(math.isfinite(c) for c in bbox):
        raise InputError(f"{where}: the box {bbox} is not four finite numbers.")
    x1, y1, x2, y2 = bbox[0], bbox[1], bbox[0] + bbox[2], bbox[1] + bbox[3]
    if min(x1, y1) < -TOLERANCE or x2 > width + TOLERANCE or y2 > height + TOLERANCE:
        raise InputError(
            f"{where}: the box {bbox} (x, y, width, height) reaches out of the image "
            f"of {width} x {height}."
        )
    corners = np.array([x1 / width, y1 / height, x2 / width, y2 / height], "float32")
    corners = np.clip(corners, 0.0, 1.0)
    if not (corners[:2] < corners[2:]).all():
        raise InputError(
            f"{where}: the box {bbox} (x, y, width, height) is empty within the image "
            f"of {width} x {height}."
        )
    return corners


def split_of(image):
    """The split of an image of Karpathy's JSON, `restval` counting as `train`."""
    return {"restval": "train"}.get(image.get("split"), image.get("split"))


def read_split(path):
    """Karpathy's split of the images; `restval` counts as `train`.

    Returns:
        dict from `"train"`, `"val"`, `"test"` to a list of image ids.

    Raises:
        InputError: If an image has no id or an unknown split.
    """
    splits = {split: [] for split in SPLITS}
    for number, image in enumerate(read_json(path, "images")["images"]):
        split = split_of(image)
        if "cocoid" not in image or split not in splits:
            raise InputError(
                f"{path}: image number {number} needs a `cocoid` and a `split` of "
                f"train, restval, val or test."
            )
        splits[split].append(image["cocoid"])
    return splits


def read_annotations(files):
    """Captions and objects of all images of a split.

    Args:
        files: `CocoFiles`.

    Returns:
        The category ids in rising order, and dict from split to a list of
        (image id, captions, objects).

    Raises:
        InputError: As the readers of the files; and if the split names an image
            that has no captions or is in no instances file.
    """
    captions, objects, categories = {}, {}, None
    for path in files.captions:
        captions.update(read_captions(path))
    for path in files.instances:
        of_file, found = read_instances(path)
        if categories not in (None, of_file):
            raise InputError(f"{path} has other categories than {files.instances[0]}.")
        categories = of_file
        objects.update(found)
    splits = read_split(files.split)
    for split, image_ids in splits.items():
        for image_id in image_ids:
            if not captions.get(image_id):
                raise InputError(
                    f"{files.split}: image {image_id} of split {split} has no captions "
                    f"in {', '.join(map(str, files.captions))}."
                )
            if image_id not in objects:
                raise InputError(
                    f"{files.split}: image {image_id} of split {split} is not in "
                    f"{', '.join(map(str, files.instances))}."
                )
    records = {
        split: [(i, captions[i], objects[i]) for i in image_ids]
        for split, image_ids in splits.items()
    }
    return categories, records
