"""Document frequencies of n-grams, as `.npz`."""

import os
import pathlib

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import read_npz
from keras_caption.formats.faults import reading

NAMES = ("keys", "counts", "images", "words")


def read_document_frequencies(
    path: str | os.PathLike,
) -> tuple[np.ndarray, np.ndarray, int, list[str]]:
    """Reads a file that `DocumentFrequencies.save` wrote.

    Args:
        path: Path of the file.

    Returns:
        Keys, int32 `(ngrams, 2)`; counts, int32 `(ngrams,)`; the number of images,
        an int; and the words of the vocabulary, a list of str.

    Raises:
        InputError: If the file is missing or not an `.npz` of such arrays, if the keys
            are not distinct and in ascending order, or if a count is not from 1 to
            the number of images.
    """
    with reading(path):
        arrays = read_npz(pathlib.Path(path), NAMES)
        images, words = arrays["images"].tolist(), arrays["words"].tolist()
    keys, counts = arrays["keys"], arrays["counts"]
    problem = problem_of(keys, counts, arrays["images"], arrays["words"])
    if problem:
        raise InputError(f"{path} holds no document frequencies: {problem}.")
    return keys, counts, images, words


def problem_of(
    keys: np.ndarray, counts: np.ndarray, images: np.ndarray, words: np.ndarray
) -> str | None:
    """Describes what is wrong with the arrays of a file; `None` if nothing is."""
    length = keys.shape[:1]
    expected = {
        "keys": (keys, "int32", (*length, 2)),
        "counts": (counts, "int32", length),
        "images": (images, "int64", ()),
        "words": (
            words,
            words.dtype if words.dtype.kind == "U" else "U",
            words.shape[:1],
        ),
    }
    for name, (array, dtype, shape) in expected.items():
        if array.dtype != dtype or array.shape != shape:
            return (
                f"{name} is of type {array.dtype} and shape {array.shape}, not "
                f"{np.dtype(dtype)} and {shape}"
            )
    if counts.min(initial=1) < 1 or counts.max(initial=0) > images:
        return f"a count is not from 1 to the number of images, {images}"
    high, low = keys.astype("int64").T
    if keys.min(initial=0) < 0 or (np.diff((high << 32) | low) <= 0).any():
        return "the keys are not distinct and in ascending order"
    return None
