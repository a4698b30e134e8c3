import pathlib

import numpy as np

from keras_caption.errors import InputError
from keras_caption.formats.arrays import read_npz
from keras_caption.formats.faults import reading


def read_frequencies(path):
    """Reads the document frequencies that a self-critical run has counted.

    Args:
        path: Path of an `.npz` file.

    Returns:
        Keys, int32 `(ngrams, 2)`; counts, int32 `(ngrams,)`; the number of images;
        and the words that the keys' tokens stand for, a list of str.

    Raises:
        InputError: If the file is missing, damaged, or holds anything else.
    """
    path = pathlib.Path(path)
    with reading(path):
        arrays = read_npz(path, ("keys", "counts", "images", "words"))
    keys, counts, images, words = arrays.values()
    is_right = (
        keys.dtype == counts.dtype == np.int32
        and keys.shape == (*counts.shape, 2)
        and images.dtype.kind in "iu"
        and images.shape == ()
        and words.dtype.kind == "U"
        and words.ndim == 1
        and counts.min(initial=1) >= 1
        and counts.max(initial=1) <= images
    )
    if not is_right:
        raise InputError(f"{path} holds no document frequencies.")
    return keys, counts, int(images), words.tolist()
