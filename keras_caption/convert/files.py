"""Readers of checkpoints, none of which runs what a file says."""

import argparse
import collections
import json
import pathlib
import pickle

import numpy as np

from keras_caption.errors import InputError


class Skipped:
    """What is read in place of a NumPy number, such as the best score so far."""

    def __init__(self, *parts):
        pass

    def __setstate__(self, state):
        pass


# All that a pickle may name, and what it gets.
PLAIN = {
    ("argparse", "Namespace"): argparse.Namespace,
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("numpy", "dtype"): Skipped,
    ("numpy.core.multiarray", "scalar"): Skipped,
    ("numpy._core.multiarray", "scalar"): Skipped,
    ("_codecs", "encode"): Skipped,  # of a number's bytes
}


def read_tensors(path):
    """The named tensors of a checkpoint.

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
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as data:
                return dict(data)
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            return load_file(path)
        if path.suffix in (".pth", ".pt"):
            import torch

            tensors = torch.load(path, map_location="cpu", weights_only=True)
            return {
                name: tensor.detach().float().numpy()
                for name, tensor in tensors.items()
            }
    except ImportError as error:
        raise InputError(
            f"{path} takes the package {error.name} to read; an .npz of the same "
            "names takes none."
        ) from None
    except Exception as error:  # each of the libraries raises others
        raise InputError(f"{path} is no checkpoint of tensors: {error}") from None
    raise InputError(f"{path} must end in .npz, .safetensors, .pth or .pt.")


class PlainUnpickler(pickle.Unpickler):
    """Reads plain containers and `argparse.Namespace`, and refuses all else.

    Only NumPy's numbers are neither made nor refused: the authors' code saves one.
    """

    def find_class(self, module, name):
        module = {"__builtin__": "builtins"}.get(module, module)
        if (module, name) in PLAIN:
            return PLAIN[module, name]
        raise pickle.UnpicklingError(f"it holds a {module}.{name}")


def read_infos(path):
    """What the self-critical toolkits save beside a checkpoint.

    Args:
        path: `infos_*.pkl`, or the same as JSON: `{"vocab": {"1": "a", ...},
            "opt": {"rnn_size": 1024, ...}}`.

    Returns:
        A pair: words, a list of str, the first of which has index 1; and options, a
        dict.

    Raises:
        InputError: If the file is missing, is neither, holds anything but plain
            data, or lacks the vocabulary or the options.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    try:
        if path.suffix == ".json":
            infos = json.loads(path.read_text())
        else:
            with open(path, "rb") as file:
                infos = PlainUnpickler(file, encoding="latin1").load()
    except Exception as error:  # whatever a broken pickle leads to
        raise InputError(f"{path} holds no plain infos: {error}.") from None
    try:
        options, by_index = infos["opt"], infos["vocab"]
        words = [by_index[str(i)] for i in range(1, len(by_index) + 1)]
        return words, dict(options if isinstance(options, dict) else vars(options))
    except KeyError as error:
        raise InputError(f"{path} lacks {error}, as infos should not.") from None
    except TypeError:
        raise InputError(
            f"{path} holds no infos: `vocab`, a dict from index to word, and `opt`."
        ) from None
