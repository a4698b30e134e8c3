"""HDF5 files: datasets within one file, of bounded size."""

import math

from keras_caption.errors import InputError
from keras_caption.formats.faults import reading


def open_hdf5(path):
    """Opens an HDF5 file for reading."""
    import h5py

    with reading(path):
        return h5py.File(path, "r")


def names_in(group, path):
    """The names in a group of a file, a list of str."""
    with reading(path):
        names = list(group)
    # h5py gives those that are no UTF-8 as bytes.
    return [n if isinstance(n, str) else n.decode("latin1") for n in names]


def plain_dataset(group, name, where, limit):
    """Finds a dataset that lies in the file itself, and does not read it yet.

    Args:
        group: `h5py.Group`.
        name: Name of the dataset in the group.
        where: What to call the record in messages.
        limit: Greatest number of bytes that it may take in memory.

    Raises:
        InputError: If there is none, it is a group or a link, lies in other files,
            takes more than `limit`, or was never written.
    """
    import h5py

    link = group.get(name, getlink=True)
    if link is None:
        raise InputError(f"{where} has no {name}.")
    if not isinstance(link, h5py.HardLink):
        raise InputError(f"{where}: {name} is a link, not a dataset.")
    dataset = group[name]
    if not isinstance(dataset, h5py.Dataset):
        raise InputError(f"{where}: {name} is a {type(dataset).__name__}.")
    if dataset.external or dataset.is_virtual:
        raise InputError(f"{where}: {name} lies in other files.")
    if dataset.shape is None:
        raise InputError(f"{where}: {name} is empty.")
    claimed = math.prod(dataset.shape) * dataset.dtype.itemsize
    if claimed > limit:
        raise InputError(
            f"{where}: {name} of shape {dataset.shape} takes {claimed:,} bytes; at "
            f"most {limit:,} are read."
        )
    if claimed and not dataset.id.get_storage_size():
        raise InputError(f"{where}: {name} was never written.")
    return dataset
