"""What extracts the features of a dataset from photos or clips."""

import os
import pathlib
from typing import Any

from keras_caption.datasets.coco_objects import CocoObjects
from keras_caption.errors import InputError
from keras_caption.formats.keras_files import load_keras
from keras_caption.objects.categories import CATEGORIES

EXTRACTOR = "extractor.keras"


def load_extractor(
    folder: str | os.PathLike,
) -> Any:
    """Loads the extractor of a prepared dataset of photos or clips.

    Args:
        folder: Path of the folder of the dataset.

    Returns:
        `keras_caption.features.Extractor`, `ClipExtractor` or a detector; `None` if the
        dataset has none.

    Raises:
        InputError: If the file of the extractor is damaged.
    """
    path = pathlib.Path(folder) / EXTRACTOR
    if not path.exists():
        return None
    extractor = load_keras(path)
    if not hasattr(extractor, "to_pixels"):
        raise InputError(f"{path} is a {type(extractor).__name__}, not an extractor.")
    return extractor


def reader_of(name: str, folder: str | os.PathLike | None, builder: Any) -> dict:
    """Returns the arguments of a model that convert photos to its inputs.

    Args:
        name: str, name of the dataset, see `keras_caption.datasets.load`.
        folder: Path of the dataset's folder.
        builder: Its TFDS builder.

    Returns:
        dict of `extractor` and `categories`, each `None` if the dataset lacks it.
    """
    extractor, categories = None, None
    if name == "prepared":
        assert folder is not None  # the builder has read it
        extractor = load_extractor(folder)
    if dimensions := getattr(extractor, "dimensions", None):  # of a detector
        categories = list(dimensions)
    elif isinstance(builder, CocoObjects):
        categories = list(CATEGORIES)
    return {"extractor": extractor, "categories": categories}
