import collections
import pathlib

import numpy as np

from keras_caption.errors import InputError
from keras_caption.formats.arrays import check_numbers
from keras_caption.formats.hdf5 import names_in, open_hdf5, plain_dataset
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords, divide

FEATURES = "_features"


class Hdf5Regions(RegionRecords):
    """Reader of HDF5 files with datasets `ID_features` and `ID_boxes`.

    Further datasets of an image with features, such as `ID_cls_prob` in the features of
    Meshed-Memory Transformers, are ignored.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        InputError: If no dataset is called `ID_features`.
    """

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        self.file = open_hdf5(path)
        names = names_in(self.file, path)
        ids = {name.removesuffix(FEATURES) for name in names if name.endswith(FEATURES)}
        if names and not ids:
            raise InputError(
                f"{path} has no dataset ID{FEATURES} and ID_boxes: its first is "
                f"{names[0]!r:.60}."
            )
        further = collections.Counter()
        for name in names:
            where = f"{path}, {name[:40]}"
            image_id, kind = self._parts(name, ids)
            if kind == "features":
                self.add_named(image_id, image_id, where, f"{path}, image {image_id}")
            elif kind is None:
                self.add_problem(f"{where}: neither ID_features nor ID_boxes.")
            elif kind != "boxes":
                further[kind] += 1
        self.notes = [
            f"{path}: ID_{kind} of {count:,} images is not read."
            for kind, count in further.items()
        ]

    @staticmethod
    def _parts(name, ids):
        """Splits the name of a dataset into image id and kind, `None` if unknown."""
        parts = name.split("_")
        for i in range(1, len(parts)):
            if (image_id := "_".join(parts[:i])) in ids:
                return image_id, "_".join(parts[i:])
        return name.rpartition("_")[0], "boxes" if parts[-1] == "boxes" else None

    def __getstate__(self):  # h5py's files cannot be pickled
        return {**self.__dict__, "file": None}

    def __setstate__(self, state):
        self.__dict__.update(state, file=open_hdf5(state["path"]))

    def read_regions(
        self, place: str, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        features, boxes = (
            plain_dataset(self.file, f"{place}_{kind}", where, RECORD_BYTES)
            for kind in ("features", "boxes")
        )
        check_numbers(features, f"{where}: {features.name}")
        check_numbers(boxes, f"{where}: {boxes.name}")
        features, boxes = features[()], boxes[()]
        return features, divide(boxes, size, where)
