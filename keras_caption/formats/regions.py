"""What all files of region features have in common: records by image id."""

import numpy as np

from keras_caption.errors import InputError
from keras_caption.formats.arrays import check_numbers
from keras_caption.formats.faults import reading

# A record takes at most this much: 2,048 regions of 2,048 numbers.
RECORD_BYTES = 16 * 2**20
# A file with more records of no known image is no file of region features.
WRONG_RECORDS = 1_000_000


class Regions:
    """The records of a file or folder, by image id.

    A subclass adds its records, and reads what `add` was given of one.

    Attributes:
        path: The file or folder.
        records: dict from image id to a pair: the place of its record, and what to
            call it in messages.
        wrong: List of str, what is wrong with all other records.
    """

    def __init__(self, path):
        self.path = path
        self.records = {}
        self.wrong = []

    @property
    def ids(self):
        return list(self.records)

    def add(self, name, place, where, record=None):
        """Adds a record, or what is wrong with its image id.

        Args:
            name: str, its image id.
            place: What `read_record` finds it by.
            where: What to call it while its image is not known.
            record: What to call it afterwards. Defaults to `where`.
        """
        # TFDS keeps ids in 64 bits.
        if not (name.isascii() and name.isdecimal() and len(name) <= 18):
            self.add_wrong(f"{where}: {name[:40]!r} is not an image id.")
        elif int(name) in self.records:
            self.add_wrong(f"{where}: image {name} comes twice.")
        else:
            self.records[int(name)] = place, record or where

    def add_wrong(self, reason):
        self.wrong.append(reason)
        if len(self.wrong) > WRONG_RECORDS:
            raise InputError(
                f"{self.path} has more than {WRONG_RECORDS:,} records of no known "
                "image: it holds no region features."
            )

    def read(self, image_id, size=None):
        """Reads the features and boxes of an image.

        Args:
            image_id: int, one of the `ids`.
            size: Width and height of the image in pixels, where the files do not
                hold them. Defaults to `None`.

        Returns:
            Features, float32 `(N, D)`, and boxes, float32 `(N, 4)`, x1, y1, x2, y2
            divided by the image's width and height.

        Raises:
            InputError: If the record is damaged or of another kind.
        """
        place, where = self.records[image_id]
        with reading(where):
            features, boxes = self.read_record(place, where, size)
        return check(features, boxes, where)

    def read_record(self, place, where, size):
        """Features and boxes of a record, divided by the image's size, unchecked."""
        raise NotImplementedError


def check(features, boxes, where):
    """Features and boxes as float32, if they are what they should be.

    Raises:
        InputError: If they differ in number, or something is not finite, or a box is
            empty or not within the image.
    """
    check_numbers(features, f"{where}: the features")
    if features.ndim != 2 or boxes.shape != (len(features), 4):
        raise InputError(
            f"{where} has features of shape {features.shape} and boxes of shape "
            f"{boxes.shape}; they should be (N, D) and (N, 4)."
        )
    with np.errstate(over="ignore"):
        features = np.asarray(features, "float32")
    if not np.isfinite(features).all():
        raise InputError(f"{where} has features that are not finite.")
    # A comparison with NaN is false.
    if not ((boxes >= -0.01) & (boxes <= 1.01)).all():
        raise InputError(f"{where} has boxes that reach out of the image.")
    boxes = np.clip(np.asarray(boxes, "float32"), 0.0, 1.0)
    if not (boxes[:, 2:] > boxes[:, :2]).all():
        raise InputError(f"{where} has a box without area.")
    return features, boxes


def divide(boxes, size, where):
    """Boxes in pixels, divided by the image's width and height."""
    if size is None:
        raise InputError(
            f"{where} has boxes in pixels, and no file tells the size of the image: "
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
