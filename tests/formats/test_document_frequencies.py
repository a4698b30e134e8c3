import numpy as np
import pytest
import readers

import keras_caption as kc

KEYS = np.array([[46340 * 4, 0], [46340 * 4 + 5, 0]], "int32")
VALID = {
    "keys": KEYS,
    "counts": np.array([2, 1], "int32"),
    "images": np.array(2),
    "words": np.array(readers.VOCABULARY.words),
}


def load(path, **changed):
    np.savez(path, **{k: v for k, v in {**VALID, **changed}.items() if v is not None})
    return kc.rewards.DocumentFrequencies.load(path, readers.VOCABULARY)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"counts": None}, "no array 'counts'"),
        ({"keys": KEYS.astype("int64")}, r"keys is of type int64 .* not int32"),
        ({"keys": KEYS[:, :1]}, r"keys is of type int32 and shape \(2, 1\)"),
        ({"keys": KEYS[::-1]}, "not distinct and in ascending order"),
        ({"keys": KEYS[[0, 0]]}, "not distinct and in ascending order"),
        ({"keys": KEYS + 46340 * 9}, "a token beyond the 7 words"),
        ({"keys": -KEYS[::-1]}, "not distinct and in ascending order"),
        ({"counts": np.array([1, -1], "int32")}, "not from 1 to the number of images"),
        ({"counts": np.array([1, 3], "int32")}, "to the number of images, 2"),
        ({"counts": np.array([1], "int32")}, r"shape \(1,\), not int32 and \(2,\)"),
        ({"images": np.array(2.0)}, "images is of type float64"),
        ({"images": np.array([2])}, "images is of type int64 and shape"),
        ({"words": np.array(["a", "b"])}, "of another vocabulary, of 2 words"),
        ({"words": np.arange(7)}, "words is of type int64"),
        ({"words": np.array([{}] * 7, object)}, "words"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, changed, message):
    assert load(tmp_path / "df.npz").images == 2
    with pytest.raises(kc.InputError, match=rf"df\.npz.*{message}") as raised:
        load(tmp_path / "df.npz", **changed)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path, vocabulary):
    with pytest.raises(kc.InputError, match=r"df\.npz cannot be read: No such file"):
        kc.rewards.DocumentFrequencies.load(tmp_path / "df.npz", vocabulary)
