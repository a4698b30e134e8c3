"""Third-party frame features: a file for each video, or one HDF5 file for all."""

import os
import pathlib
from typing import Any

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import check_numbers, only, read_npy, read_npz
from keras_caption.formats.faults import reading
from keras_caption.formats.feature_records import FeatureRecords
from keras_caption.formats.folders import list_files
from keras_caption.formats.hdf5 import names_in, open_hdf5, plain_dataset
from keras_caption.formats.regions import finite_float32
from keras_caption.formats.suffixes import suffix_of

# A video takes at most this much: 4,096 frames of 4,096 numbers.
RECORD_BYTES = 64 * 2**20
FEATURES = "feat"  # the features among several arrays of an .npz file


class FrameFiles(FeatureRecords):
    """Frame features of videos, by the names of the videos.

    A subclass calls `add` for each record in its constructor, and implements
    `read_frames`.

    Args:
        path: `pathlib.Path` of the file or folder.
    """

    def read_record(self, place: Any, where: str) -> np.ndarray:
        """Reads the features of a record.

        Args:
            place: Location of the record, as given to `add`.
            where: str, name of the record in messages.

        Returns:
            float32 `(T, D)`.

        Raises:
            InputError: If the features are damaged, empty, not finite, or have another
                number of axes.
        """
        features = self.read_frames(place, where)
        # I3D features are often stored as a batch of one.
        if features.ndim == 3 and len(features) == 1:
            features = features[0]
        if features.ndim != 2:
            raise InputError(
                f"{where} has features of shape {features.shape}; it should be (T, D), "
                "for T frames."
            )
        return finite_float32(features, where)

    def read_frames(self, place: Any, where: str) -> np.ndarray:
        """Reads an array of real numbers; `read_record` checks its shape."""
        raise NotImplementedError


class FolderFrames(FrameFiles):
    """Reader of folders of `NAME.npy` or `NAME.npz`.

    If an `.npz` file has several arrays, the features are `feat`.
    """

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        for file in list_files(path, (".npy", ".npz")):
            self.add(file.stem, file, str(file))
        if not self.records:
            raise InputError(f"There is no .npy or .npz file in {path}.")

    def read_frames(self, place: pathlib.Path, where: str) -> np.ndarray:
        if suffix_of(place) == ".npz":
            features = only(read_npz(place, limit=RECORD_BYTES), where, FEATURES)
        else:
            features = read_npy(place, RECORD_BYTES)
        check_numbers(features, where)
        return features


class Hdf5Frames(FrameFiles):
    """Reader of HDF5 files with a dataset for each video, named as the video."""

    open_file = staticmethod(open_hdf5)

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        for name in names_in(self.file, path):
            self.add(name, name, f"{path}, {name}")

    def read_frames(self, place: str, where: str) -> np.ndarray:
        features = plain_dataset(self.file, place, where, RECORD_BYTES)
        check_numbers(features, where)
        return features[()]


def open_frames(path: str | os.PathLike) -> FrameFiles:
    """Opens frame features of videos in any of the supported formats.

    | path | format |
    |---|---|
    | folder | `NAME.npy` or `NAME.npz`, an array for each video |
    | `*.h5`, `*.hdf5` | a dataset for each video, of its name |

    An array is `(T, D)`, or a batch of one of it, of T frames or segments in order of
    time.

    Args:
        path: Path of a file or folder.

    Returns:
        `FrameFiles`, with `ids`, a list of str, and `read(name)`.

    Raises:
        InputError: If the file is missing, has none of these formats, or cannot be
            read. A fault of a single video is raised by `read`.
    """
    path = pathlib.Path(path)
    if not (path.is_file() or path.is_dir()):
        raise InputError(f"There is no file or folder {path}.")
    with reading(path):
        if path.is_dir():
            return FolderFrames(path)
        if suffix_of(path) in (".h5", ".hdf5"):
            return Hdf5Frames(path)
    raise InputError(
        f"{path} should be an .h5, or a folder of .npy or .npz files: frame features."
    )
