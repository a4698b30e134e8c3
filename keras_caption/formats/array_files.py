import functools
import math
import pathlib
from collections.abc import Callable

import numpy as np

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.arrays import only, open_zip, read_npy, read_npz
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.folders import list_files
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords
from keras_caption.formats.suffixes import suffix_of
from keras_caption.formats.torch_files import read_tensor

SAFETENSORS = ".safetensors"


def open_safetensors(path: pathlib.Path):
    """Opens a `.safetensors` file for reading."""
    with missing_extras():
        import safetensors
    with reading(path):
        return safetensors.safe_open(path, framework="numpy")


class ArrayRegions(RegionRecords):
    """Reader of folders with one array for each image, in a file named by its id.

    Features of image encoders such as CLIP, SigLIP and DINO, and the grids of
    grid-feats-vqa are stored so. A file is `.npy`; `.npz` or `.safetensors` with one
    array; or `.pth` or `.pt` with one tensor, a grid `(1, D, height, width)` or
    `(D, height, width)`. Arrays are `(D,)`, a vector of the whole image; `(N, D)`,
    tokens without boxes; or `(height, width, D)`, a grid.

    Args:
        path: `pathlib.Path` of the folder that contains the files, at any depth.
    """

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        for file in list_files(path, tuple(READERS), below=True):
            self.add_named(file.stem, file, str(file))
        self.has_boxes = first_has_boxes(self)

    def read_regions(
        self, place: pathlib.Path, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, None]:
        check_file(place, RECORD_BYTES)
        return READERS[suffix_of(place)](place), None


class SafetensorsRegions(RegionRecords):
    """Reader of one `.safetensors` file, whose arrays are named by image ids.

    The arrays are those of `ArrayRegions`.

    Args:
        path: `pathlib.Path` of the file.
    """

    open_file = staticmethod(open_safetensors)

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        for name in self.file.keys():  # noqa: SIM118
            self.add_named(name, name, f"{path}, {name[:40]}")
        self.has_boxes = first_has_boxes(self)

    def read_regions(
        self, place: str, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, None]:
        shape = self.file.get_slice(place).get_shape()
        if math.prod(shape) > RECORD_BYTES // 2:  # of the shortest type that is read
            raise InputError(
                f"{where} has shape {tuple(shape)}; at most {RECORD_BYTES:,} bytes are "
                "read."
            )
        return self.file.get_tensor(place), None


def first_has_boxes(records: RegionRecords) -> bool:
    """Whether the first readable record has boxes: a grid, or the whole image."""
    for id_ in records.ids:
        try:
            return records.read(id_)[1] is not None
        except InputError:
            continue
    return False


def read_only_array(path: pathlib.Path) -> np.ndarray:
    """Reads the only array of an `.npz` file."""
    return only(read_npz(path, limit=RECORD_BYTES), str(path))


def read_only_safetensor(path: pathlib.Path) -> np.ndarray:
    """Reads the only array of a `.safetensors` file."""
    file = open_safetensors(path)
    return only({name: file.get_tensor(name) for name in file.keys()}, str(path))  # noqa: SIM118


def read_channels_first(path: pathlib.Path) -> np.ndarray:
    """Reads the only tensor of a file of PyTorch; grids become `(height, width, D)`."""
    tensor = read_tensor(path)
    if tensor.ndim == 4 and len(tensor) == 1:
        tensor = tensor[0]
    return np.moveaxis(tensor, 0, -1) if tensor.ndim == 3 else tensor


READERS: dict[str, Callable[[pathlib.Path], np.ndarray]] = {
    ".npy": functools.partial(read_npy, limit=RECORD_BYTES),
    ".npz": read_only_array,
    SAFETENSORS: read_only_safetensor,
    ".pth": read_channels_first,
    ".pt": read_channels_first,
}


def has_arrays(folder: pathlib.Path) -> bool:
    """Whether a folder has files of `ArrayRegions`, rather than those of MCAN."""
    files = list_files(folder, tuple(READERS), below=True)
    if not files or suffix_of(files[0]) != ".npz":
        return bool(files)
    try:
        with open_zip(files[0], RECORD_BYTES) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
    except InputError:
        return False
    return len(names) == 1 and names[0] not in ("x", "bbox")
