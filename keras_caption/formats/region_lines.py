"""Region features as lines of text, one line for each image."""

import base64
import os
import pathlib
from collections.abc import Iterable

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.fields import ID_BYTES
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords, divide

LINE_BYTES = 2 * RECORD_BYTES  # base64 takes 4/3
NAME_BYTES = ID_BYTES + 1  # the tab included


class LinesOfImages(RegionRecords):
    """Reader of files with a line for each image: its id, a tab, and further fields.

    Args:
        path: `pathlib.Path` of the file.
        starts: Iterable of int, the byte offsets of the lines.

    Attributes:
        layouts: tuple of tuples of str, names of the fields; files of one kind may have
            different layouts.
        unlike: str, what a line with another number of fields may be too, for messages.
    """

    layouts: tuple[tuple[str, ...], ...] = ()
    unlike = ""

    def __init__(self, path: pathlib.Path, starts: Iterable[int]):
        super().__init__(path)
        with open(path, "rb") as file:
            for number, start in enumerate(starts, start=1):
                where = f"{path}, line {number}"
                file.seek(max(start - 1, 0))
                before = file.read(1) if start else b"\n"
                # A line truncated within its id must not count as another image.
                begin, tab, _ = file.read(NAME_BYTES).partition(b"\t")
                name = begin.decode("utf-8-sig", errors="replace")
                if before != b"\n":
                    self.add_problem(f"{where}: no line starts at byte {start}.")
                    continue
                if tab:
                    self.add_named(name, start, where, f"{where} (image {name})")
                else:
                    name = f"{name[:20]} ..."
                    self.add_problem(f"{where}: {name!r} is not an image id.")

    def read_fields(self, start: int, where: str) -> dict[str, bytes]:
        """Reads the fields of the line at a byte offset, by name."""
        with open(self.path, "rb") as file:
            file.seek(start)
            line = file.readline(LINE_BYTES).rstrip(b"\r\n")
        values = line.split(b"\t", max(map(len, self.layouts)))
        for layout in self.layouts:
            if len(values) == len(layout):
                return dict(zip(layout, values, strict=True))
        numbers = " or ".join(str(len(layout)) for layout in self.layouts)
        raise InputError(
            f"{where} has {len(values)} fields, not {numbers}: it is truncated"
            f"{self.unlike}."
        )


def line_starts(path: str | os.PathLike) -> list[int]:
    """Finds the byte offsets of the lines of a file, in one pass.

    Raises:
        InputError: If a line is longer than `LINE_BYTES`.
    """
    start = 0
    starts: list[int] = []
    with open(path, "rb") as file:
        while line := file.readline(LINE_BYTES):
            if len(line) == LINE_BYTES:
                raise InputError(
                    f"{path}, line {len(starts) + 1}, is longer than {LINE_BYTES:,} "
                    "bytes: it holds no region features."
                )
            starts.append(start)
            start += len(line)
    return starts


def decode(text: str | bytes, where: str, field: str) -> np.ndarray:
    """Decodes a field of float32 values in base64.

    Raises:
        InputError: If the field is not base64 of float32 values, or of values that are
            unlikely as float32, and likely as float16 or float64.
    """
    try:
        values = np.frombuffer(base64.b64decode(text, validate=True), "<f4")
    except ValueError as error:
        raise InputError(f"{where}: its {field} cannot be decoded: {error}.") from None
    if not is_likely(values):
        for other in np.dtype("<f2"), np.dtype("<f8"):
            if is_made_of(values, other):
                raise InputError(
                    f"{where}: its {field} look like {other.name}; float32 is expected."
                )
    return values


def is_likely(values: np.ndarray) -> bool:
    """Whether 99 % of values but zeros have magnitudes of features or pixels.

    Half of a float64, or two values of float16, make a float32 of any magnitude.
    """
    with np.errstate(invalid="ignore"):  # NaN of a float16
        sizes = np.abs(values[values != 0].astype("float64"))
    return not sizes.size or bool(np.mean((sizes > 1e-9) & (sizes < 1e5)) > 0.99)


def is_made_of(values: np.ndarray, other: np.dtype) -> bool:
    """Whether the bytes of float32 values are likely values of another type."""
    if values.nbytes % other.itemsize:
        return False
    # The first two bytes of a float32 that was a bfloat16 are zeros.
    return bool(values.view("<u2")[::2].any()) and is_likely(values.view(other))


def counted_regions(
    features: np.ndarray,
    boxes: np.ndarray,
    count: int,
    size: tuple[float, float],
    where: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Shapes the values of an image's regions, of which a record says the number.

    Args:
        features: float32 array, the features of all regions in a row.
        boxes: float32 array, the corners of all boxes in a row, in pixels.
        count: int, number of regions.
        size: Width and height of the image in pixels.
        where: str, place of the record, for messages.

    Returns:
        Features, `(count, D)`, and boxes, `(count, 4)`, divided by the size.

    Raises:
        InputError: If there are not as many values as the number says.
    """
    if count < 1 or len(boxes) != 4 * count or len(features) % count:
        raise InputError(
            f"{where}: num_boxes is {count}, but there are {len(boxes)} numbers of "
            f"boxes and {len(features)} of features."
        )
    return features.reshape(count, -1), divide(boxes.reshape(count, 4), size, where)
