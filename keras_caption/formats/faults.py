"""What libraries raise of a damaged file, as one sentence."""

import contextlib

from keras_caption.errors import InputError


@contextlib.contextmanager
def reading(where):
    """Turns whatever the block raises into an `InputError` that names the file.

    NumPy, zipfile, h5py, Keras and TFDS have many kinds of exceptions for damaged
    files, of several lines or of the length of the file.

    Args:
        where: Path, and record where known, for the message.
    """
    try:
        yield
    except (InputError, ImportError):
        raise
    except Exception as error:
        raise InputError(f"{where} cannot be read: {reason_of(error)}.") from error


def reason_of(error):
    """What an exception says in its first line, a short str without a full stop."""
    message = getattr(error, "strerror", None) or str(error)
    lines = message.strip().splitlines() or [type(error).__name__]
    return lines[0][:200].rstrip(".: ")
