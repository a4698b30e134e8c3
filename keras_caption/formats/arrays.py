"""NumPy arrays in `.npy` and `.npz` files, and checks of arrays of numbers."""

import contextlib
import math
import pathlib
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import check_file, reading

# The members of a ZIP archive may take `ZIP_BYTES` plus `ZIP_EXPANSION` times its size.
# Weights compress little; a few bytes must not expand to gigabytes of zeros.
ZIP_BYTES = 64 * 2**20
ZIP_EXPANSION = 100


@contextlib.contextmanager
def open_zip(path: pathlib.Path, limit: int | None = None) -> Iterator[zipfile.ZipFile]:
    """Opens a ZIP archive whose members take a bounded amount of memory.

    Args:
        path: `pathlib.Path` of the file.
        limit: int, greatest number of bytes of all members together. Defaults to
            `ZIP_BYTES` plus `ZIP_EXPANSION` times the size of the file.

    Yields:
        `zipfile.ZipFile`.

    Raises:
        InputError: If the file is not a ZIP archive, or its members claim more bytes.
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


def read_npz(
    path: pathlib.Path,
    names: Sequence[str] | None = None,
    limit: int | None = None,
    optional: Sequence[str] = (),
) -> dict[str, np.ndarray]:
    """Reads the arrays of an `.npz` file.

    Args:
        path: `pathlib.Path` of the file.
        names: Sequence of str, the arrays to read. Defaults to all.
        limit: int, greatest number of bytes, see `open_zip`.
        optional: Sequence of str, further arrays to read if the file has them.

    Returns:
        dict from name to NumPy array.

    Raises:
        InputError: If the file is not an archive of arrays, claims more than it
            holds, or lacks one of the names.
    """
    with open_zip(path, limit) as archive:
        members = {
            member.filename.removesuffix(".npy"): member
            for member in archive.infolist()
        }
        for name in names or ():
            if name not in members:
                raise InputError(f"{path} has no array {name!r}.")
        present = [name for name in optional if name in members]
        arrays = {}
        for name in [*names, *present] if names else members:
            member = members[name]
            with archive.open(member) as file:
                arrays[name] = read_array(file, member.file_size, f"{path}, {name}")
        return arrays


def only(
    arrays: dict[str, np.ndarray], where: str, name: str | None = None
) -> np.ndarray:
    """Returns the only array of a file, or the one of a name.

    Args:
        arrays: dict from name to array.
        where: str, name of the file in messages.
        name: str, of the array that counts among several. Defaults to `None`.

    Raises:
        InputError: If there are several, or none, and none of the name.
    """
    if name in arrays:
        return arrays[name]
    if len(arrays) != 1:
        called = f", or one called {name!r}" if name else ""
        raise InputError(
            f"{where} should have one array{called}. Its arrays: "
            f"{', '.join(arrays)[:80]}"
        )
    [array] = arrays.values()
    return array


def read_npy(path: pathlib.Path, limit: int) -> np.ndarray:
    """Reads the array of an `.npy` file of at most `limit` bytes.

    Raises:
        InputError: If the file is missing, larger, or damaged.
    """
    check_file(path, limit)
    with open(path, "rb") as file:
        return read_array(file, path.stat().st_size, str(path))


def read_array(file: IO[bytes], size: int, where: str) -> np.ndarray:
    """Reads an array in NumPy's format, which must fill its file.

    Args:
        file: Seekable binary file.
        size: int, the number of bytes of the file.
        where: str, name of the array in messages.

    Raises:
        InputError: If the array is one of objects, or its size is not `size`.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise InputError(
            f"{where} is an array of an unknown version of NumPy's format."
        )
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject:
        raise InputError(
            f"{where} is an array of Python objects, which are not read: it should be "
            "real numbers."
        )
    needed = file.tell() + math.prod(shape) * dtype.itemsize
    if needed != size:
        raise InputError(
            f"{where} has {size:,} bytes, but an array of shape {shape} and type "
            f"{dtype} takes {needed:,}."
        )
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def check_numbers(array: Any, where: str) -> None:
    """Refuses arrays that are empty, or not of real numbers.

    Args:
        array: NumPy array, or another object with `dtype` and `shape`.
        where: str, name of the array in messages.

    Raises:
        InputError: If the array is empty or has another type.
    """
    # bfloat16 is of the kind of a library's own types.
    if array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16":
        raise InputError(f"{where} has type {array.dtype}; it should be real numbers.")
    if 0 in array.shape:
        raise InputError(f"{where} is empty: its shape is {tuple(array.shape)}.")
