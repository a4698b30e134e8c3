"""Checkpoints of other code: named tensors."""

import pathlib

from keras_caption.errors import InputError
from keras_caption.formats.arrays import check_numbers, read_npz
from keras_caption.formats.faults import reading


def read_tensors(path):
    """Reads the named tensors of a checkpoint.

    Args:
        path: `.npz`, `.safetensors` (needs the package safetensors) or a PyTorch
            state dict, `.pth` or `.pt` (needs PyTorch).

    Returns:
        dict from name to NumPy array.

    Raises:
        InputError: If the file is missing, cannot be read, or is of another kind.
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
            f"{path} takes the package {error.name} to read; an .npz of the same "
            "names takes none."
        ) from None
    for name, tensor in tensors.items():
        check_numbers(tensor, f"{path}, {name}")
    return tensors


def read_safetensors(path):
    from safetensors.numpy import load_file

    return load_file(path)


def read_state_dict(path):
    import torch

    tensors = torch.load(path, map_location="cpu", weights_only=True)
    return {name: tensor.detach().float().numpy() for name, tensor in tensors.items()}


READERS = {
    ".npz": read_npz,
    ".safetensors": read_safetensors,
    ".pth": read_state_dict,
    ".pt": read_state_dict,
}
