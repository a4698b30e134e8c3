"""HDF5 files: datasets within one file, of bounded size."""

import math
import os
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reading


def open_hdf5(path: str | os.PathLike) -> Any:
    """Opens an HDF5 file for reading."""
    import h5py

    with reading(path):
        return h5py.File(path, "r")


def names_in(group: Any, path: str | os.PathLike) -> list[str]:
    """Lists the names in a group of a file."""
    with reading(path):
        names = list(group)
    # h5py returns names that are not UTF-8 as bytes.
    return [n if isinstance(n, str) else n.decode("latin1") for n in names]


CHUNK_BYTES = 2**28  # greatest size of a chunk, which is read as a whole


def plain_dataset(group: Any, name: str, where: str, limit: int | None = None) -> Any:
    """Finds a dataset that is stored in the file itself, without reading it.

    Args:
        group: `h5py.Group`.
        name: str, name of the dataset in the group.
        where: str, name of the record in messages.
        limit: int, greatest number of bytes that the dataset may take in memory.
            Defaults to `None`, for one that is read in parts.

    Returns:
        `h5py.Dataset`.

    Raises:
        InputError: If the dataset is missing, is a group or a link, is stored in other
            files, takes more than `limit`, has too large chunks, or was never written.
    """
    import h5py

    link = group.get(name, getlink=True)
    if link is None:
        raise InputError(f"{where} has no {name}.")
    if not isinstance(link, h5py.HardLink):
        raise InputError(f"{where}: {name} is a link, not a dataset.")
    dataset = group[name]
    if not isinstance(dataset, h5py.Dataset):
        kind = type(dataset).__name__
        raise InputError(f"{where}: {name} is a {kind}, not a dataset.")
    if dataset.external or dataset.is_virtual:
        raise InputError(f"{where}: {name} is stored in other files.")
    if dataset.shape is None:
        raise InputError(f"{where}: {name} is empty.")
    claimed = math.prod(dataset.shape) * dataset.dtype.itemsize
    if limit is not None and claimed > limit:
        raise InputError(
            f"{where}: {name} of shape {dataset.shape} takes {claimed:,} bytes; at "
            f"most {limit:,} are read."
        )
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    if chunk > CHUNK_BYTES:
        raise InputError(
            f"{where}: {name} has chunks of {chunk:,} bytes; at most {CHUNK_BYTES:,} "
            "are read at once."
        )
    if claimed and not dataset.id.get_storage_size():
        raise InputError(f"{where}: {name} was never written.")
    return dataset
