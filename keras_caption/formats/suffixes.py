"""Suffixes of names of files, which decide readers."""

import os
import pathlib

PACKED = ".gz"


def suffix_of(path: str | os.PathLike) -> str:
    """The suffix of a file in lower case, as cameras and Windows write it in capitals.

    Args:
        path: Path or address.
    """
    return pathlib.PurePath(path).suffix.lower()


def is_packed(path: str | os.PathLike) -> bool:
    """Whether a name says that a file is compressed by gzip."""
    return suffix_of(path) == PACKED


def unpacked_suffix(path: str | os.PathLike) -> str:
    """The suffix before `.gz`, if there is one: `.csv` of `captions.csv.gz`."""
    path = pathlib.PurePath(path)
    return suffix_of(path.stem if is_packed(path) else path)
