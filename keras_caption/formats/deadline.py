"""A time by which files have to be read, as of requests that end then."""

import contextlib
import contextvars
import time
from collections.abc import Iterator

from keras_caption.errors import InputError

_end = contextvars.ContextVar("end", default=float("inf"))


@contextlib.contextmanager
def reading_until(end: float) -> Iterator[None]:
    """Refuses what a block begins to read, or continues to read, after a time.

    Args:
        end: float, in seconds of `time.monotonic`.
    """
    token = _end.set(end)
    try:
        yield
    finally:
        _end.reset(token)


def check_time(name: str) -> None:
    """Raises `InputError` if there is no more time to read a file.

    Args:
        name: str, what the file is called in the message.
    """
    if time.monotonic() > _end.get():
        raise InputError(f"{name} takes too long to read.")
