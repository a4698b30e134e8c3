"""NumPy arrays in files: `.npy`, `.npz`, and what an array of numbers has to be."""

import contextlib
import math
import zipfile

import numpy as np

from keras_caption.errors import InputError
from keras_caption.formats.faults import reading

# Members of a ZIP archive may take this much, and so many times the archive's size:
# weights compress little, and a few bytes of zeros must not become gigabytes.
ZIP_BYTES = 64 * 2**20
ZIP_EXPANSION = 100


@contextlib.contextmanager
def open_zip(path, limit=None):
    """Opens a ZIP archive whose members take a bounded amount of memory.

    Args:
        path: `pathlib.Path` of the file.
        limit: Greatest number of bytes of all members together. Defaults to
            `ZIP_BYTES` plus `ZIP_EXPANSION` times the size of the file.

    Raises:
        InputError: If the file is no ZIP archive, or its members claim more.
    """
    with reading(path):
        archive = zipfile.ZipFile(path)
    with archive:
        claimed = sum(member.file_size for member in archive.infolist())
        size = path.stat().st_size
        limit = limit or ZIP_BYTES + ZIP_EXPANSION * size
        if claimed > limit:
            raise InputError(
                f"{path}, of {size:,} bytes, claims to hold {claimed:,}; at most "
                f"{limit:,} are read."
            )
        yield archive


def read_npz(path, names=None, limit=None):
    """Reads the arrays of an `.npz` file.

    Args:
        path: `pathlib.Path` of the file.
        names: Names of the arrays. Defaults to all of them.
        limit: See `open_zip`.

    Returns:
        dict from name to NumPy array.

    Raises:
        InputError: If the file is no archive of arrays, claims more than it holds,
            or lacks one of the names.
    """
    with open_zip(path, limit) as archive:
        members = {
            member.filename.removesuffix(".npy"): member
            for member in archive.infolist()
        }
        for name in names or ():
            if name not in members:
                raise InputError(f"{path} has no array {name!r}.")
        arrays = {}
        for name in names or members:
            member = members[name]
            with archive.open(member) as file:
                arrays[name] = read_array(file, member.file_size, f"{path}, {name}")
        return arrays


def read_array(file, size, where):
    """Reads an array in NumPy's format, which has to fill its file.

    Args:
        file: Binary file that can seek.
        size: int, the number of bytes of the file.
        where: What to call it in messages.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise InputError(f"{where} is an array of objects or of an unknown version.")
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    needed = file.tell() + math.prod(shape) * dtype.itemsize
    if needed != size:
        raise InputError(
            f"{where} has {size:,} bytes, but an array of shape {shape} and type "
            f"{dtype} takes {needed:,}."
        )
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def check_numbers(array, where):
    """Refuses arrays that are empty, or not of real numbers.

    Args:
        array: NumPy array, or another with `dtype` and `shape`.
        where: What to call it in messages.
    """
    if array.dtype.kind not in "fiu":
        raise InputError(f"{where} has type {array.dtype}; it should be real numbers.")
    if 0 in array.shape:
        raise InputError(f"{where} is empty: its shape is {tuple(array.shape)}.")
