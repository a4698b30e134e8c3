"""A deadline for reading files, such as that of a request."""

import contextlib
import contextvars
import time
from collections.abc import Iterator

from keras_caption.base.errors import InputError

_end = contextvars.ContextVar("end", default=float("inf"))


@contextlib.contextmanager
def reading_until(end: float) -> Iterator[None]:
    """Sets a deadline for reading files within a block.

    Args:
        end: float, the deadline, in seconds of `time.monotonic`.
    """
    token = _end.set(end)
    try:
        yield
    finally:
        _end.reset(token)


def check_time(name: str) -> None:
    """Raises `InputError` if the deadline for reading has passed.

    Args:
        name: str, name of the file in the message.
    """
    if time.monotonic() > _end.get():
        raise InputError(f"{name} takes too long to read.")
