"""HDF5 files: datasets within one file, of bounded size."""

import math

from keras_caption.errors import InputError


def open_hdf5(path):
    """Opens an HDF5 file for reading."""
    import h5py

    try:
        return h5py.File(path, "r")
    except Exception as error:  # h5py passes on all of the library's
        raise InputError(f"{path} cannot be read: {error}.") from None


def names_in(group, path):
    """The names in a group of a file, a list of str."""
    try:
        return list(group)
    except Exception as error:
        raise InputError(f"{path} cannot be read: {error}.") from None


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
