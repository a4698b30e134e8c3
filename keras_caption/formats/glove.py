"""Word vectors as text, in the format of GloVe."""

import os
import pathlib
from collections.abc import Container

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.text_lines import lines
from keras_caption.text.normalization import canonical


def read_glove(
    path: str | os.PathLike, words: Container[str], dim: int
) -> dict[str, np.ndarray]:
    """Reads the vectors of some words from a text file of GloVe.

    A line is a word and the numbers of its vector, separated by spaces. A first line of
    two numbers, as word2vec and fastText write it, is skipped.

    Args:
        path: Path of the file, plain or as `.gz`.
        words: Container of str, words to read the vectors of, in NFC.
        dim: int, size of the vectors.

    Returns:
        dict from word to float32 `(dim,)`, of the words that the file has.

    Raises:
        InputError: If the file is missing, damaged, has vectors of another size, or
            none of the words.
    """
    path = pathlib.Path(path)
    vectors: dict[str, np.ndarray] = {}
    for number, line in enumerate(lines(path), start=1):
        fields = line.rstrip(" ").split(" ")
        if number == 1 and len(fields) == 2:
            continue
        # A few words of the largest file contain spaces: they have more fields.
        size = len(fields) - 1
        if size < dim or (number < 3 and size != dim):
            raise InputError(
                f"{path}, line {number}, has a vector of {size} numbers; the model's "
                f"embeddings have {dim}."
            )
        word = canonical(fields[0])
        if word not in words or size != dim:
            continue
        try:
            vector = np.array(fields[1:], "float32")
        except ValueError:
            vector = np.full(dim, np.nan)
        if not np.isfinite(vector).all():
            raise InputError(f"{path}, line {number}, has no vector of finite numbers.")
        vectors.setdefault(word, vector)
    if not vectors:
        raise InputError(f"{path} has a vector for none of the model's words.")
    return vectors
