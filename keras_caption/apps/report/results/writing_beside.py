"""Files beside photos: the fault of one photo is not one of all others."""

import contextlib
import errno
import os
from collections.abc import Iterator

from keras_caption.base.errors import InputError

# What concerns all photos of a disk: full, or not to be written to.
OF_ALL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@contextlib.contextmanager
def writing_beside(photo: str | os.PathLike) -> Iterator[None]:
    """Raises as `InputError` what the operating system refuses for one photo alone.

    Args:
        photo: Path of the photo.
    """
    try:
        yield
    except OSError as error:
        if error.errno in OF_ALL:
            raise
        raise InputError((error.strerror or str(error)).lower()) from error
