"""Checkpoints of other code: tensors by name."""

import os
import pathlib

import numpy as np

from keras_caption.errors import InputError
from keras_caption.formats.arrays import check_numbers, read_npz
from keras_caption.formats.faults import reading


def read_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Reads the tensors of a checkpoint by name.

    Args:
        path: Path of an `.npz`, a `.safetensors` (needs the package safetensors) or a
            PyTorch state dict, `.pth` or `.pt` (needs PyTorch).

    Returns:
        dict from name to NumPy array.

    Raises:
        InputError: If the file is missing, damaged or of another format, or the
            package that reads it is missing.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"There is no checkpoint {path}.")
    if path.suffix not in READERS:
        raise InputError(f"{path} must end in .npz, .safetensors, .pth or .pt.")
    try:
        with reading(path):
            tensors = READERS[path.suffix](path)
    except ImportError as error:
        raise InputError(
            f"Reading {path} needs the package {error.name}; an .npz with the same "
            "names needs none."
        ) from None
    for name, tensor in tensors.items():
        check_numbers(tensor, f"{path}, {name}")
    return tensors


def read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(path)


def read_state_dict(path: pathlib.Path) -> dict[str, np.ndarray]:
    import torch

    tensors = torch.load(path, map_location="cpu", weights_only=True)
    return {name: tensor.detach().float().numpy() for name, tensor in tensors.items()}


READERS = {
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".pth": read_state_dict,
    ".pt": read_state_dict,
}
