"""Writes files as `torch.save` does, without PyTorch."""

import collections
import io
import pickle
import sys
import types
import zipfile
from unittest import mock

import numpy as np

from keras_caption.formats.torch_files import MAGIC

SYSTEM = {
    "protocol_version": 1001,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class FloatStorage:
    """Numbers of one tensor, or of several."""

    def __init__(self, key, numbers):
        self.key = key
        self.numbers = numbers


def _rebuild_tensor_v2(*arguments):
    raise AssertionError("a reader must not call it")


for name in ("FloatStorage", "_rebuild_tensor_v2"):
    globals()[name].__module__ = "torch" if name == "FloatStorage" else "torch._utils"
    globals()[name].__qualname__ = name


class Tensor:
    """A tensor that pickles as PyTorch's."""

    def __init__(self, storage, shape, strides, offset=0):
        self.parts = storage, offset, tuple(shape), tuple(strides)

    def __reduce__(self):
        return _rebuild_tensor_v2, (*self.parts, False, collections.OrderedDict())


class Pickler(pickle.Pickler):
    def __init__(self, file, is_archive):
        super().__init__(file, protocol=2)
        self.is_archive = is_archive
        self.storages = {}

    def persistent_id(self, x):
        if not isinstance(x, FloatStorage):
            return None
        self.storages[x.key] = x
        pid = ("storage", FloatStorage, x.key, "cuda:0", x.numbers.size)
        return pid if self.is_archive else (*pid, None)


def tensors_of(arrays):
    """A state dict of arrays; every other one is a transposed view, with an offset."""
    state = collections.OrderedDict()
    for number, (name, array) in enumerate(arrays.items()):
        array = array.astype("<f4")
        if number % 2 or array.ndim != 2:
            strides = [stride // 4 for stride in array.strides]
            storage = FloatStorage(str(number), np.ravel(array))
            state[name] = Tensor(storage, array.shape, strides)
        else:
            numbers = np.concatenate([np.float32([7, 7, 7]), np.ravel(array.T)])
            storage = FloatStorage(str(number), numbers)
            state[name] = Tensor(storage, array.shape, (1, len(array)), 3)
    state._metadata = collections.OrderedDict()
    return state


def write(path, content, is_archive):
    """Writes content as PyTorch does, since 1.6 or before."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage, utils._rebuild_tensor_v2 = FloatStorage, _rebuild_tensor_v2
    torch._utils = utils
    file = io.BytesIO()
    with mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        if not is_archive:
            for value in (MAGIC, 1001, SYSTEM):
                pickle.dump(value, file, protocol=2)
        pickler = Pickler(file, is_archive)
        pickler.dump(content)
    storages = pickler.storages
    if is_archive:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("epoch13/data.pkl", file.getvalue())
            archive.writestr("epoch13/byteorder", "little")
            for key, storage in storages.items():
                archive.writestr(f"epoch13/data/{key}", storage.numbers.tobytes())
            archive.writestr("epoch13/version", "3\n")
        return
    pickle.dump(sorted(storages), file, protocol=2)
    for key in sorted(storages):
        numbers = storages[key].numbers
        file.write(numbers.size.to_bytes(8, "little") + numbers.tobytes())
    path.write_bytes(file.getvalue())
