"""Files of `torch.save`, read without PyTorch and without executing their code."""

import collections
import contextlib
import dataclasses
import functools
import io
import math
import mmap
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import open_zip
from keras_caption.formats.faults import reading, refuse_pipe
from keras_caption.formats.plain_pickles import NotPlain, PlainUnpickler

# Before PyTorch 1.6, a file was a sequence of pickles; the first holds this number.
MAGIC = 0x1950A86A20F9469CFC6C
NUMBERS = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}
STATE_DICTS = "state_dict", "model_state"  # the second is JoeyNMT's


@dataclasses.dataclass(frozen=True)
class Storage:
    """Storage of tensors: the type of its numbers, and the key of its bytes."""

    dtype: str
    key: str


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """A tensor of a file, not read yet."""

    storage: Storage
    offset: int
    shape: list[int]
    strides: list[int]

    def read(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the tensor, a read-only view of the numbers of its storage.

        Raises:
            ValueError: If the tensor exceeds the storage.
        """
        if 0 in self.shape:
            return np.zeros(self.shape, numbers.dtype)
        steps = zip(self.shape, self.strides, strict=True)
        last = self.offset + sum((size - 1) * stride for size, stride in steps)
        are_valid = all(
            type(x) is int and x >= 0 for x in (self.offset, *self.shape, *self.strides)
        )
        if not are_valid or max(last + 1, math.prod(self.shape)) > numbers.size:
            raise ValueError(f"a tensor of shape {self.shape} is not in the file")
        strides = [stride * numbers.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(
            numbers[self.offset :], self.shape, strides, writeable=False
        )


def rebuild_tensor(storage, offset, shape, strides, *_):
    """Replaces `torch._utils._rebuild_tensor_v2`."""
    return StoredTensor(storage, offset, shape, strides)


def rebuild_parameter(tensor, *_):
    """Replaces `torch._utils._rebuild_parameter`."""
    return tensor


class TorchUnpickler(PlainUnpickler):
    """Reads containers of tensors, and refuses all else."""

    names: dict[tuple[str, str], Any] = {
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
        ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
        **{("torch", name): dtype for name, dtype in NUMBERS.items()},
    }

    def __init__(self, file: Any):
        super().__init__(file, encoding="latin1")
        self.dtypes: dict[str, Any] = {}  # of the storages

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, key = pid[:3]
        # The last element describes a view of another storage, which is not supported.
        if kind != "storage" or (len(pid) > 5 and pid[5] is not None):
            raise NotPlain("it holds a storage of an unknown kind")
        self.dtypes[str(key)] = dtype
        return Storage(dtype, str(key))


def read_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Reads the tensors of a state dict that `torch.save` wrote.

    Args:
        path: Path of the file. It holds a state dict, or a dict with one at
            `"state_dict"`, as checkpoints with the state of an optimizer.

    Returns:
        dict from name to read-only NumPy array. Tensors of one storage, such as tied
        weights, share its memory, so that many of them do not exhaust it.

    Raises:
        InputError: If the file is damaged, or has other content.
    """
    with reading(path), open_file(path) as (content, read_numbers):
        numbers_of = functools.cache(read_numbers)
        for name in STATE_DICTS:
            if isinstance(content, dict) and isinstance(content.get(name), dict):
                content = content[name]
        if not isinstance(content, dict) or not content:
            raise InputError(f"{path} holds no state dict.")
        tensors = {}
        for name, tensor in content.items():
            if not isinstance(name, str) or not isinstance(tensor, StoredTensor):
                raise InputError(f"{path}: {name!r:.60} is no tensor of a state dict.")
            tensors[name] = tensor.read(numbers_of(tensor.storage))
        return tensors


def read_tensor(path: pathlib.Path) -> np.ndarray:
    """Reads a file in which `torch.save` wrote one tensor.

    Raises:
        InputError: If the file is damaged, or has other content.
    """
    with reading(path), open_file(path) as (content, read_numbers):
        if not isinstance(content, StoredTensor):
            raise InputError(f"{path} holds no tensor alone.")
        return content.read(read_numbers(content.storage))


@contextlib.contextmanager
def open_file(path: pathlib.Path) -> Iterator[tuple[Any, Callable]]:
    """Opens a file of either format.

    Yields:
        Its content, with `StoredTensor` for tensors, and a function from a `Storage`
        to its numbers.
    """
    refuse_pipe(path)
    with open(path, "rb") as file:
        is_archive = file.read(2) == b"PK"
    with open_archive(path) if is_archive else open_pickles(path) as opened:
        yield opened


@contextlib.contextmanager
def open_archive(path: pathlib.Path) -> Iterator[tuple[Any, Callable]]:
    """Opens a ZIP archive, the format of PyTorch since 1.6."""
    with open_zip(path) as archive:
        names = [n for n in archive.namelist() if n.endswith("/data.pkl")]
        if len(names) != 1:
            raise ValueError(f"it has {len(names)} data.pkl, not one")
        [name] = names
        folder = name.removesuffix("data.pkl")
        if f"{folder}byteorder" in archive.namelist():
            check_little_endian(archive.read(f"{folder}byteorder") == b"little")
        content = TorchUnpickler(io.BytesIO(archive.read(name))).load()

        def numbers_of(storage):
            data = archive.read(f"{folder}data/{storage.key}")
            return np.frombuffer(data, storage.dtype)

        yield content, numbers_of


@contextlib.contextmanager
def open_pickles(path: pathlib.Path) -> Iterator[tuple[Any, Callable]]:
    """Opens a sequence of pickles and numbers, PyTorch's format before 1.6."""
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        if PlainUnpickler(mapped).load() != MAGIC:
            raise ValueError("it is not of PyTorch")
        PlainUnpickler(mapped).load()  # the version of the format, always 1001
        check_little_endian(PlainUnpickler(mapped).load()["little_endian"])
        unpickler = TorchUnpickler(mapped)
        content = unpickler.load()
        keys = PlainUnpickler(mapped).load()
        places, at = {}, mapped.tell()
        for key in map(str, keys):
            size = np.dtype(unpickler.dtypes[key]).itemsize
            count = int.from_bytes(mapped[at : at + 8], "little")
            places[key] = at + 8, count
            at += 8 + count * size

        def numbers_of(storage):
            start, count = places[storage.key]
            stop = start + count * np.dtype(storage.dtype).itemsize
            return np.frombuffer(mapped[start:stop], storage.dtype, count)

        yield content, numbers_of


def check_little_endian(is_little: bool) -> None:
    """Refuses big-endian numbers."""
    if not is_little:
        raise ValueError("its numbers are big-endian")
