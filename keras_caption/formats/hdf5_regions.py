import collections
import math
import pathlib

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import check_numbers
from keras_caption.formats.hdf5 import names_in, open_hdf5, plain_dataset
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords, divide

FEATURES = ("features", "grids")  # the kinds of datasets that are read


class Hdf5Regions(RegionRecords):
    """Reader of HDF5 files with datasets `ID_features` and `ID_boxes`, or `ID_grids`.

    A file may lack all boxes. Where it has no features, those of grids, as the later
    captioners' files have them, are read: the cells of a square, row by row. `ID_size`,
    as DLCT's file has it, is the image's width and height. Further datasets of an image
    with features, such as `ID_cls_prob` in the features of Meshed-Memory Transformers,
    are ignored.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        InputError: If no dataset is called `ID_features` or `ID_grids`.
    """

    open_file = staticmethod(open_hdf5)

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        names = names_in(self.file, path)
        for self.read_kind in FEATURES:
            end = f"_{self.read_kind}"
            ids = {name.removesuffix(end) for name in names if name.endswith(end)}
            if ids:
                break
        if names and not ids:
            raise InputError(
                f"{path} has no dataset ID_features and ID_boxes: its first is "
                f"{names[0]!r:.60}."
            )
        further: collections.Counter[str] = collections.Counter()
        kinds = set()
        for name in names:
            where = f"{path}, {name[:40]}"
            image_id, kind = self._parts(name, ids)
            kinds.add(kind)
            if kind == self.read_kind:
                self.add_named(image_id, image_id, where, f"{path}, image {image_id}")
            elif kind is None:
                self.add_problem(f"{where}: neither ID_features nor ID_boxes.")
            elif kind not in ("boxes", "size"):
                further[kind] += 1
        is_grid = self.read_kind == "grids"
        self.has_boxes = is_grid or "boxes" in kinds
        self.has_sizes = "size" in kinds
        self.needs_sizes = self.has_boxes and not (is_grid or self.has_sizes)
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

    def read_regions(
        self, place: str, where: str, size: tuple[float, float] | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        features = self._numbers(place, self.read_kind, where)
        if self.read_kind == "grids":
            side = math.isqrt(len(features))
            if features.ndim == 2 and side**2 == len(features):
                features = features.reshape(side, side, -1)
            return features, None
        if not (self.has_boxes and self.keeps_boxes):
            return features, None
        boxes = self._numbers(place, "boxes", where)
        if self.has_sizes:
            values = self._numbers(place, "size", where).reshape(-1)
            if len(values) != 2:
                raise InputError(f"{where}: its size has {len(values)} numbers, not 2.")
            size = float(values[0]), float(values[1])
        return features, divide(boxes, size, where)

    def _numbers(self, image_id, kind, where):
        """Reads a dataset of an image."""
        dataset = plain_dataset(self.file, f"{image_id}_{kind}", where, RECORD_BYTES)
        check_numbers(dataset, f"{where}: {dataset.name}")
        return dataset[()]
