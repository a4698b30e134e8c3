"""The files that a captioning dataset of COCO is read from."""

import dataclasses
import pathlib

from keras_caption.errors import InputError
from keras_caption.formats.coco import read_captions, read_instances
from keras_caption.formats.karpathy import read_split


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


def read_annotations(files):
    """Reads the captions and objects of all images of a split.

    Args:
        files: `CocoFiles`.

    Returns:
        The category ids in rising order, and dict from split to a list of
        (image id, captions, objects).

    Raises:
        InputError: If a file is wrong, two files disagree about an image, a split is
            empty, or an image of it has no captions or is in no instances file.
    """
    captions, categories, objects = {}, None, {}
    for path in files.captions:
        found = {i: texts for i, texts in read_captions(path).items() if texts}
        merge(captions, found, path, "captions")
    for path in files.instances:
        of_file, found = read_instances(path)
        if categories not in (None, of_file):
            raise InputError(f"{path} has other categories than {files.instances[0]}.")
        categories = of_file
        merge(objects, found, path, "objects")
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
    return categories, records


def merge(of_images, more, path, what):
    """Adds the lists of one file; refuses an image whose list differs between files.

    Args:
        of_images: dict from image id to a list, which is changed.
        more: The same, of the file at `path`.
        path: Path of the file.
        what: Name of the lists' items, for the error message.
    """
    for image_id, found in more.items():
        if sorted(of_images.get(image_id, found)) != sorted(found):
            raise InputError(
                f"{path}: image {image_id} has other {what} in another file."
            )
    of_images.update(more)
