"""Converts errors that libraries raise for damaged files to one sentence."""

import contextlib
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.text.normalization import one_line

MOST = 300  # characters of a reason: some messages repeat a file
# Words that differ between reasons of one kind: numbers, paths, file and quoted names.
SPECIFIC = re.compile(r"\S*[\d/\\'\"]\S*|\S+\.\w\S*")


@contextlib.contextmanager
def reading(where: Any) -> Iterator[None]:
    """Converts any exception of the block to an `InputError` that names the file.

    For damaged files, NumPy, zipfile, h5py, Keras and TFDS raise many types of
    exceptions, whose messages may have several lines or the length of the file.

    Args:
        where: Path of the file, and the record if known, for the message.
    """
    try:
        yield
    except ImportError:
        raise
    except InputError as error:  # names of records in damaged files may have any form
        if str(error).isprintable():
            raise
        raise InputError(one_line(str(error))) from None
    except Exception as error:
        raise InputError(f"{where} cannot be read: {reason_of(error)}.") from error


def text_of_path(path: Any, noun: str) -> str:
    """The text of a path or address that a user gave.

    Args:
        path: str or path.
        noun: str, what is there, for the message.

    Raises:
        InputError: If the path is of another type.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{noun} should be a path. Received: {path!r:.60}")
    return os.fspath(path)


def refuse_pipe(path: pathlib.Path) -> None:
    """Refuses pipes and devices, from which reading may never end.

    Args:
        path: `pathlib.Path`; it need not exist.

    Raises:
        InputError: If the path is that of a pipe or a device.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path} is a pipe or a device, not a file.")


def check_file(path: pathlib.Path, most: int | None = None) -> None:
    """Refuses a path that is not that of a file.

    Args:
        path: `pathlib.Path`.
        most: int, bytes that the file may have. Defaults to `None`, any number.

    Raises:
        InputError: If there is no such file, it is a pipe or a device, or larger.
    """
    refuse_pipe(path)
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if most is not None and path.stat().st_size > most:
        raise InputError(f"{path} is larger than {most:,} bytes.")


def existing_folder(path: str | os.PathLike) -> pathlib.Path:
    """The path of a folder.

    Raises:
        InputError: If there is no such folder.
    """
    folder = pathlib.Path(path)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    return folder


def reason_of(error: Exception) -> str:
    """Returns the first line of an exception's message, without a full stop."""
    if type(error).__name__ == "ConnectionError":  # of Python or of requests
        return "there is no connection"
    message = getattr(error, "strerror", None) or str(error)
    lines = message.strip().splitlines() or [type(error).__name__]
    reason = lines[0].rstrip(".: ")
    if len(reason) <= MOST:
        return reason
    return f"{reason[:MOST].rpartition(' ')[0] or reason[:MOST]} …"


def kind_of(reason: str, name: str) -> str:
    """Returns the part that reasons of one kind have in common.

    Args:
        reason: str, a sentence, which may contain the name.
        name: str, name of the file or record, or an empty str.
    """
    return SPECIFIC.sub("", reason.replace(name, "") if name else reason)
