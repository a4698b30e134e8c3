"""What a file of captions or questions is for: train, val or test."""

import os
import pathlib
import re
from collections.abc import Iterable

from keras_caption.errors import InputError

SPLITS = ("train", "val", "test")
WORDS = {
    **{"train": "train", "training": "train", "test": "test", "testing": "test"},
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
}


def splits_in(name: str) -> list[str]:
    """The splits that the name of a file or folder has as words, in order.

    The words end where letters do: `captions_val2014.json` says `val`, and
    `evaluation.json` nothing. VQA's `test-dev` is a part of `test`.
    """
    words = re.findall("[a-z]+", name.lower().replace("test-dev", "test"))
    return list(dict.fromkeys(WORDS[word] for word in words if word in WORDS))


def given_split(path: str | os.PathLike) -> tuple[pathlib.Path, str | None]:
    """Separates what `train=PATH`, `val=PATH` or `test=PATH` says.

    Args:
        path: Path; a str may begin with a split.

    Returns:
        The path, and the split or `None`.

    Raises:
        InputError: If there is no such split.
    """
    split, equals, rest = path.partition("=") if isinstance(path, str) else ("",) * 3
    if pathlib.Path(path).exists():  # its name may have the character
        return pathlib.Path(path), None
    if split in SPLITS and rest:
        return pathlib.Path(rest), split
    if equals and split.isalpha():
        raise InputError(f"{path}: a split is train, val or test.")
    return pathlib.Path(path), None


def given_splits(
    paths: Iterable[str | os.PathLike],
) -> dict[pathlib.Path, str | None]:
    """Separates the splits of several paths, see `given_split`.

    Raises:
        InputError: If there is no such split, or a path is given twice.
    """
    splits = {}
    for path, split in map(given_split, paths):
        if path in splits:
            raise InputError(f"{path} is given twice.")
        splits[path] = split
    return splits


def unclear(path: pathlib.Path, reason: str) -> InputError:
    """The error for a file whose split is neither named nor given.

    Args:
        path: `pathlib.Path` of the file or folder.
        reason: str, the beginning of the sentence after the path.
    """
    return InputError(
        f"{path} {reason}: say what it is for, as in --captions train={path} (or val=, "
        "test=)."
    )
