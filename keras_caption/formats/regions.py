"""Region features: the base class of their readers, and checks of records."""

from typing import Any

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import check_numbers
from keras_caption.formats.feature_records import FeatureRecords
from keras_caption.formats.fields import image_id_of
from keras_caption.text.normalization import one_line

# A record takes at most this much: 2,048 regions of 2,048 numbers.
RECORD_BYTES = 16 * 2**20
TOLERANCE = 0.01  # of boxes that are divided by the size of the image
# A file with more records without a valid image id does not hold region features.
MAX_PROBLEMS = 1_000_000


class RegionRecords(FeatureRecords):
    """The records of a file or folder of region features, by image id.

    A subclass calls `add_named` for each record in its constructor, and implements
    `read_regions`.

    Args:
        path: `pathlib.Path` of the file or folder.

    Attributes:
        has_boxes: bool, whether records have boxes, or are grids, whose cells are
            boxes.
        needs_sizes: bool, whether boxes are in pixels of images whose sizes the file
            does not have.
        keeps_boxes: bool, whether `read` returns boxes; set to `False` where sizes are
            unknown and boxes not needed.
    """

    has_boxes = True
    needs_sizes = False
    keeps_boxes = True

    def add_named(
        self, name: str, place: Any, where: str, record: str | None = None
    ) -> None:
        """Adds a record, or a problem if its name is not an image id.

        Args:
            name: str, the image id, see `image_id_of`.
            place: Location of the record, for `read_regions`.
            where: str, name of the record in messages about its image id.
            record: str, name of the record in later messages. Defaults to `where`.
        """
        try:
            self.add(image_id_of(name), place, record or where)
        except ValueError:
            self.add_problem(f"{where}: {name[:40]!r} is not an image id.")

    def add_problem(self, problem: str) -> None:
        """Adds a record's problem.

        Raises:
            InputError: If there are more than `MAX_PROBLEMS`.
        """
        self.problems.append(one_line(problem))
        if len(self.problems) > MAX_PROBLEMS:
            raise InputError(
                f"{self.path} has more than {MAX_PROBLEMS:,} records without a valid "
                "image id: it holds no region features."
            )

    def read_record(
        self, place: Any, where: str, size: tuple[int, int] | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Reads the features and boxes of a record.

        Args:
            place: Location of the record, as given to `add_named`.
            where: str, name of the record in messages.
            size: Width and height of the image in pixels, for files without them.
                Defaults to `None`, unknown.

        Returns:
            Features, float32 `(N, D)`, and boxes, float32 `(N, 4)`, x1, y1, x2, y2
            divided by the image's width and height, or `None` if there are none.

        Raises:
            InputError: If the record is damaged or does not follow the format.
        """
        features, boxes = self.read_regions(place, where, size)
        if boxes is None:
            check_numbers(features, f"{where}: its array of features")
            features, boxes = in_rows(features)
        return check(features, boxes if self.keeps_boxes else None, where)

    def read_regions(
        self, place: Any, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Reads features and boxes; `read_record` checks them.

        Returns:
            Features `(N, D)` and boxes `(N, 4)`; or features of `in_rows` and `None`.
        """
        raise NotImplementedError


def in_rows(features: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Makes regions of features that have no boxes.

    Args:
        features: A grid, `(height, width, D)`, whose cells have boxes; a vector `(D,)`
            of the whole image; or vectors `(N, D)`, of which no box is known.

    Returns:
        `(N, D)`, a grid row by row, and boxes `(N, 4)` or `None`.
    """
    if features.ndim == 1:
        return features[None], np.array([[0, 0, 1, 1]], "float32")
    if features.ndim != 3:
        return features, None
    height, width, dim = features.shape
    y, x = np.divmod(np.arange(height * width), width)
    boxes = np.stack([x, y, x + 1, y + 1], axis=1) / [width, height, width, height]
    return features.reshape(-1, dim), boxes


def check(
    features: np.ndarray, boxes: np.ndarray | None, where: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Validates features and boxes, if there are any, and converts them to float32.

    Raises:
        InputError: If they differ in number, a feature is not finite, or a box is
            empty or exceeds the image.
    """
    check_numbers(features, f"{where}: its array of features")
    if boxes is None:
        if features.ndim != 2:
            raise InputError(
                f"{where} has features of shape {features.shape}, which is neither one "
                "vector, nor a row for each region, nor a grid."
            )
        return finite_float32(features, where), None
    if features.ndim != 2 or boxes.shape != (len(features), 4):
        raise InputError(
            f"{where} has features of shape {features.shape} and boxes of shape "
            f"{boxes.shape}; they should be (N, D) and (N, 4)."
        )
    features = finite_float32(features, where)
    # `not all`, since comparisons with NaN are false.
    if not ((boxes >= -TOLERANCE) & (boxes <= 1 + TOLERANCE)).all():
        raise InputError(f"{where} has boxes that exceed the image.")
    boxes = np.clip(np.asarray(boxes, "float32"), 0.0, 1.0)
    if not (boxes[:, 2:] > boxes[:, :2]).all():
        raise InputError(
            f"{where} has a box without area: boxes should be x1, y1, x2, y2."
        )
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
            array `(N, 4)` of numbers, or are divided already.
    """
    if size is None:
        raise InputError(
            f"{where} has boxes in pixels, but the size of the image is unknown: "
            "`keras-caption prepare` takes it from COCO's captions JSON."
        )
    check_numbers(boxes, f"{where}: its array of boxes")
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InputError(
            f"{where} has boxes of shape {boxes.shape}; it should be (N, 4)."
        )
    if (boxes <= 1 + TOLERANCE).all():
        raise InputError(
            f"{where} has boxes within one pixel: they should be in pixels, not "
            "divided by the image's width and height."
        )
    width, height = size
    if not (0 < width < np.inf and 0 < height < np.inf):
        raise InputError(f"{where} is of an image of {width} x {height} pixels.")
    with np.errstate(over="ignore"):
        return np.asarray(boxes, "float32") / np.array([width, height] * 2, "float32")
