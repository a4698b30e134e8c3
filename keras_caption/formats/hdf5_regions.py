import pathlib

import numpy as np

from keras_caption.formats.arrays import check_numbers
from keras_caption.formats.hdf5 import names_in, open_hdf5, plain_dataset
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords, divide


class Hdf5Regions(RegionRecords):
    """Reader of HDF5 files with datasets `ID_features` and `ID_boxes`.

    Args:
        path: `pathlib.Path` of the file.
    """

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        self.file = open_hdf5(path)
        for name in names_in(self.file, path):
            where = f"{path}, {name[:40]}"
            image_id, _, kind = name.rpartition("_")
            if kind == "features":
                self.add_named(image_id, image_id, where, f"{path}, image {image_id}")
            elif kind != "boxes":
                self.add_problem(f"{where}: neither ID_features nor ID_boxes.")

    def __getstate__(self):
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
