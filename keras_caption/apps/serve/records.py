"""Reads and checks the values of one record of a user."""

import pathlib
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.features import Clip, read_photo
from keras_caption.features.photos import check_size
from keras_caption.settings.limits import MAX_ITEMS

if TYPE_CHECKING:
    from keras_caption.features import ClipExtractor


def photo_of(value: Any, place: int, max_pixels: int) -> np.ndarray:
    """The pixels of a record's photo, uint8 `(height, width, 3)`.

    Args:
        value: bytes of an image file, or the pixels.
        place: int, place of the record, for messages.
        max_pixels: int, greatest number of pixels that are decoded.

    Raises:
        InputError: If `value` is no photo, damaged or too large.
    """
    if isinstance(value, bytes):
        return read_photo(value, f"The photo of record {place}", max_pixels)
    is_photo = getattr(value, "dtype", None) == "uint8" and (
        value.ndim == 3 and value.shape[-1] == 3 and value.size
    )
    if not is_photo:
        kind = type(value).__name__
        raise InputError(
            f"The photo of record {place} should be the bytes of an image file, or a "
            f"uint8 array (height, width, 3). Received: {kind}"
        )
    check_size(value.shape[1::-1], f"The photo of record {place}", max_pixels)
    return value


def clip_of(value: Any, place: int, extractor: "ClipExtractor") -> Clip:
    """The sampled frames of a record's clip.

    Args:
        value: bytes of a video file, or `Clip`.
        place: int, place of the record, for messages.
        extractor: `ClipExtractor` that samples the frames.

    Raises:
        InputError: If `value` is no clip, damaged or cut.
    """
    if isinstance(value, Clip):
        return value
    if not isinstance(value, bytes):
        raise InputError(
            f"The clip of record {place} should be the bytes of a video file. "
            f"Received: {type(value).__name__}"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "clip")
        path.write_bytes(value)
        try:
            return extractor.read(path)
        except InputError as error:
            problem = str(error).replace(str(path), f"The clip of record {place}")
            raise InputError(problem) from None


def array_without_text(value: Any) -> np.ndarray:
    """Converts a value of JSON to an array, unless it is a list with a text.

    NumPy gives each text of an array the length of the longest: a body of a few
    megabytes would become terabytes.

    Raises:
        ValueError: If a list has a text, or lists have different lengths.
    """
    if isinstance(value, list) and str in {*map(type, np.array(value, object).flat)}:
        raise ValueError("A list of numbers has a text.")
    return np.asarray(value)


def array_of(name: str, value: Any, place: int) -> np.ndarray:
    """Converts a value of a record to an array of float32, int32 or bool.

    Raises:
        InputError: If the value is no array of numbers, or has too many items.
    """
    try:
        array = array_without_text(value)
        kind = {"f": "float32", "i": "int32", "u": "int32", "b": "bool"}.get(
            array.dtype.kind
        )
    except ValueError:
        kind = None
    if kind is None:
        raise InputError(f"`{name}` of record {place} should be an array of numbers.")
    if array.ndim and len(array) > MAX_ITEMS:
        raise InputError(
            f"`{name}` of record {place} has {len(array):,} rows; at most "
            f"{MAX_ITEMS:,} are read."
        )
    if kind == "int32" and np.abs(array.astype("float64")).max(initial=0) >= 2**31:
        raise InputError(f"`{name}` of record {place} has numbers beyond 32 bits.")
    return array.astype(kind)
