"""The split of a file of captions or questions: train, val or test."""

import os
import pathlib
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from keras_caption.base.errors import InputError

SPLITS = ("train", "val", "test")
WORDS = {
    **{"train": "train", "training": "train", "test": "test", "testing": "test"},
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
}


def meant_split(word: Any) -> Any:
    """The split that a word means, such as `validation`; any other value as it is."""
    return WORDS.get(word.strip().lower(), word) if isinstance(word, str) else word


Split = Annotated[Literal["train", "val", "test"], BeforeValidator(meant_split)]


def splits_in(name: str) -> list[str]:
    """Finds the splits that are words of the name of a file or folder, in order.

    A word is a run of letters: `captions_val2014.json` contains `val`, and
    `evaluation.json` no split. VQA's `test-dev` is a part of `test`.
    """
    words = re.findall("[a-z]+", name.lower().replace("test-dev", "test"))
    return list(dict.fromkeys(WORDS[word] for word in words if word in WORDS))


def given_split(path: str | os.PathLike) -> tuple[pathlib.Path, str | None]:
    """Splits `train=PATH`, `val=PATH` or `test=PATH` into path and split.

    Args:
        path: Path; a str may begin with a split.

    Returns:
        The path, and the split or `None`.

    Raises:
        InputError: If the split is unknown.
    """
    split, equals, rest = path.partition("=") if isinstance(path, str) else ("",) * 3
    if pathlib.Path(path).exists():  # its name may contain "="
        return pathlib.Path(path), None
    if split in SPLITS and rest:
        return pathlib.Path(rest), split
    if equals and split.isalpha():
        raise InputError(f"{path}: a split is train, val or test.")
    return pathlib.Path(path), None


def given_splits(
    paths: Iterable[str | os.PathLike],
) -> dict[pathlib.Path, str | None]:
    """Splits several paths with splits, see `given_split`.

    Raises:
        InputError: If a split is unknown, or a path is given twice.
    """
    splits = {}
    for path, split in map(given_split, paths):
        if path in splits:
            raise InputError(f"{path} is given twice.")
        splits[path] = split
    return splits


def unclear(path: pathlib.Path | str, reason: str) -> InputError:
    """Makes the error for a file whose split is neither named nor given.

    Args:
        path: Path of the file or folder, or a str that names a part of it.
        reason: str, the beginning of the sentence after the path.
    """
    return InputError(
        f"{path} {reason}: say what it is for, as in --captions train={path} (or val=, "
        "test=)."
    )
