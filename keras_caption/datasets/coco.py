"""COCO's annotation files of a captioning dataset."""

import dataclasses
import os
import pathlib
from typing import Self, TypeVar

from keras_caption.base.errors import InputError
from keras_caption.formats.coco import read_captions, read_instances
from keras_caption.formats.faults import existing_folder
from keras_caption.formats.folders import list_files
from keras_caption.formats.karpathy import read_split


@dataclasses.dataclass(frozen=True)
class CocoFiles:
    """Paths of the annotation files of a captioning dataset.

    Attributes:
        captions: Tuple of paths in COCO's captions format.
        instances: Tuple of paths in COCO's instances format.
        split: Path of Karpathy's split.
    """

    captions: tuple[pathlib.Path, ...]
    instances: tuple[pathlib.Path, ...]
    split: pathlib.Path

    @classmethod
    def find(cls, folder: str | os.PathLike) -> Self:
        """Finds the annotation files in a folder.

        Args:
            folder: Path of a folder that contains, at any depth, `captions_*.json` and
                `instances_*.json` in COCO's format, and one Karpathy split,
                `dataset_*.json` or `*split*.json`.

        Raises:
            InputError: If the folder or one of the kinds of files is missing, or there
                are several splits.
        """
        folder = existing_folder(folder)
        files = list_files(folder, (".json",), below=True)

        def called(*patterns):
            matching = [f for f in files if any(map(f.match, patterns))]
            if not matching:
                raise InputError(
                    f"There is no {' or '.join(patterns)} in {folder} or below."
                )
            return tuple(matching)

        captions, instances = called("captions_*.json"), called("instances_*.json")
        splits = called("dataset_*.json", "*split*.json")
        if len(splits) > 1:
            names = ", ".join(map(str, splits))
            raise InputError(f"There is more than one split file: {names}.")
        return cls(captions, instances, splits[0])


def read_annotations(
    files: CocoFiles,
) -> tuple[list[int], dict[str, list[tuple[int, list, list]]]]:
    """Reads the captions and objects of all images of a split.

    Args:
        files: `CocoFiles`.

    Returns:
        The category ids in ascending order, and a dict from split to a list of
        (image id, captions, objects).

    Raises:
        InputError: If a file does not follow its format, two files differ about an
            image, a split is empty, or one of its images has no captions or is in no
            instances file.
    """
    captions: dict[int | str, list[str]] = {}
    objects: dict[int | str, list[tuple[int, tuple[float, ...]]]] = {}
    categories: list[int] | None = None
    for path in files.captions:
        file_captions = {i: texts for i, texts in read_captions(path).items() if texts}
        merge(captions, file_captions, path, "captions")
    for path in files.instances:
        file_categories, file_objects = read_instances(path)
        if categories not in (None, file_categories):
            raise InputError(f"{path} has other categories than {files.instances[0]}.")
        categories = file_categories
        merge(objects, file_objects, path, "objects")
    records = {}
    for split, image_ids in read_split(files.split).items():
        if not image_ids:
            raise InputError(f"{files.split} has no image of split {split}.")
        for image_id in image_ids:
            where = f"{files.split}: image {image_id} of split {split}"
            if image_id not in captions:
                raise InputError(
                    f"{where} has no captions in {', '.join(map(str, files.captions))}."
                )
            if image_id not in objects:
                raise InputError(
                    f"{where} is not in {', '.join(map(str, files.instances))}."
                )
        records[split] = [(i, captions[i], objects[i]) for i in image_ids]
    return categories or [], records


Content = TypeVar("Content", str, tuple[int, tuple[float, ...]])


def merge(
    merged: dict[int | str, list[Content]],
    added: dict[int | str, list[Content]],
    path: str | os.PathLike,
    content: str,
) -> None:
    """Merges the lists of a file into those of other files, by image id.

    Args:
        merged: dict from image id to a list, changed in place.
        added: dict from image id to a list, of the file at `path`.
        path: Path of the file.
        content: str, name of the content of the lists in the message.

    Raises:
        InputError: If the lists of an image differ between files.
    """
    for image_id, values in added.items():
        if sorted(merged.get(image_id, values)) != sorted(values):
            raise InputError(
                f"{path}: image {image_id} has other {content} in another file."
            )
    merged.update(added)
