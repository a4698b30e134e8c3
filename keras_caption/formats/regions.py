"""Base class of the readers of region features: records by image id."""

import pathlib
from typing import Any

import numpy as np

from keras_caption.errors import InputError
from keras_caption.formats.arrays import check_numbers
from keras_caption.formats.faults import reading

# A record takes at most this much: 2,048 regions of 2,048 numbers.
RECORD_BYTES = 16 * 2**20
# A file with more records without a valid image id holds no region features.
MAX_PROBLEMS = 1_000_000


class Regions:
    """The records of a file or folder of region features, by image id.

    A subclass calls `add` for each record in its constructor, and implements
    `read_record`.

    Args:
        path: `pathlib.Path` of the file or folder.

    Attributes:
        path: `pathlib.Path` of the file or folder.
        records: dict from image id to a pair: the place of the record, and its name in
            messages.
        problems: List of str, a sentence for each record whose image id is invalid or
            repeated.
    """

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.records = {}
        self.problems = []

    @property
    def ids(self) -> list[int]:
        """Image ids of the records, in the order of the file."""
        return list(self.records)

    def add(self, name: str, place: Any, where: str, record: str | None = None) -> None:
        """Adds a record, or a problem if its image id is invalid or repeated.

        Args:
            name: str, the image id.
            place: Where the record is, for `read_record`.
            where: str, name of the record in messages about its image id.
            record: str, name of the record in later messages. Defaults to `where`.
        """
        # TFDS stores ids in 64 bits.
        if not (name.isascii() and name.isdecimal() and len(name) <= 18):
            self.add_problem(f"{where}: {name[:40]!r} is not an image id.")
        elif int(name) in self.records:
            self.add_problem(f"{where}: image {name} comes twice.")
        else:
            self.records[int(name)] = place, record or where

    def add_problem(self, problem: str) -> None:
        """Adds a record's problem.

        Raises:
            InputError: If there are more than `MAX_PROBLEMS`.
        """
        self.problems.append(problem)
        if len(self.problems) > MAX_PROBLEMS:
            raise InputError(
                f"{self.path} has more than {MAX_PROBLEMS:,} records without a valid "
                "image id: it holds no region features."
            )

    def read(
        self, image_id: int, size: tuple[int, int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Reads the features and boxes of an image.

        Args:
            image_id: int, one of the `ids`.
            size: Width and height of the image in pixels, for files without them.
                Defaults to `None`, unknown.

        Returns:
            Features, float32 `(N, D)`, and boxes, float32 `(N, 4)`, x1, y1, x2, y2
            divided by the image's width and height.

        Raises:
            InputError: If the record is damaged or does not follow the format.
        """
        place, where = self.records[image_id]
        with reading(where):
            features, boxes = self.read_record(place, where, size)
        return check(features, boxes, where)

    def read_record(
        self, place: Any, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Reads features and boxes of a record; `read` checks them.

        Args:
            place: Where the record is, as given to `add`.
            where: str, name of the record in messages.
            size: Width and height of the image in pixels, or `None`.

        Returns:
            Features `(N, D)` and boxes `(N, 4)`, divided by the image's size.
        """
        raise NotImplementedError


def check(
    features: np.ndarray, boxes: np.ndarray, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Validates features and boxes and converts them to float32.

    Raises:
        InputError: If they differ in number, a feature is not finite, or a box is
            empty or exceeds the image.
    """
    check_numbers(features, f"{where}: the features")
    if features.ndim != 2 or boxes.shape != (len(features), 4):
        raise InputError(
            f"{where} has features of shape {features.shape} and boxes of shape "
            f"{boxes.shape}; they should be (N, D) and (N, 4)."
        )
    features = finite_float32(features, where)
    # A comparison with NaN is false.
    if not ((boxes >= -0.01) & (boxes <= 1.01)).all():
        raise InputError(f"{where} has boxes that exceed the image.")
    boxes = np.clip(np.asarray(boxes, "float32"), 0.0, 1.0)
    if not (boxes[:, 2:] > boxes[:, :2]).all():
        raise InputError(f"{where} has a box without area.")
    return features, boxes


def finite_float32(features: np.ndarray, where: str) -> np.ndarray:
    """Converts features to float32; raises `InputError` if one is not finite."""
    with np.errstate(over="ignore"):
        features = np.asarray(features, "float32")
    if not np.isfinite(features).all():
        raise InputError(f"{where} has features that are not finite.")
    return features


def divide(
    boxes: np.ndarray, size: tuple[float, float] | None, where: str
) -> np.ndarray:
    """Divides boxes in pixels by the image's width and height.

    Raises:
        InputError: If the size is unknown or not positive, or the boxes are not an
            array `(N, 4)` of numbers.
    """
    if size is None:
        raise InputError(
            f"{where} has boxes in pixels, but the size of the image is unknown: "
            "give COCO's captions JSON too."
        )
    check_numbers(boxes, f"{where}: the boxes")
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InputError(
            f"{where} has boxes of shape {boxes.shape}; it should be (N, 4)."
        )
    width, height = size
    if not (0 < width < np.inf and 0 < height < np.inf):
        raise InputError(f"{where} is of an image of {width} x {height} pixels.")
    with np.errstate(over="ignore"):
        return np.asarray(boxes, "float32") / np.float32([width, height] * 2)
