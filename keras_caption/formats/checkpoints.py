"""Checkpoints of other code: tensors by name."""

import os
import pathlib

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.arrays import check_numbers, read_npz
from keras_caption.formats.faults import reading
from keras_caption.formats.suffixes import suffix_of
from keras_caption.formats.torch_files import read_torch

# The largest models that are converted have a gigabyte. A sparse file claims any size,
# and takes as much memory.
CHECKPOINT_BYTES = 4 * 2**30


def read_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Reads the tensors of a checkpoint by name.

    Args:
        path: Path of an `.npz`, a `.safetensors` (needs the package safetensors) or a
            file of `torch.save`, `.pth`, `.pt` or `.pkl`, see
            `keras_caption.formats.torch_files.read_torch`.

    Returns:
        dict from name to NumPy array.

    Raises:
        InputError: If the file is missing, damaged, of another format or larger than
            `CHECKPOINT_BYTES`, or the package that reads it is missing.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"There is no checkpoint {path}.")
    suffix = suffix_of(path)
    if suffix not in READERS:
        raise InputError(f"{path} must end in .npz, .safetensors, .pth, .pt or .pkl.")
    size = path.stat().st_size
    if size > CHECKPOINT_BYTES:
        raise InputError(
            f"{path} has {size:,} bytes; checkpoints of at most {CHECKPOINT_BYTES:,} "
            "are read."
        )
    with reading(path):
        tensors = READERS[suffix](path)
    for name, tensor in tensors.items():
        check_numbers(tensor, f"{path}, {name}")
    return tensors


def read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    with missing_extras():
        from safetensors.numpy import load_file

    return load_file(path)


READERS = {
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".pth": read_torch,
    ".pt": read_torch,
    ".pkl": read_torch,
    ".bin": read_torch,
    ".ckpt": read_torch,
}
