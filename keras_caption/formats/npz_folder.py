import pathlib

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import check_numbers, read_npy, read_npz
from keras_caption.formats.faults import reading
from keras_caption.formats.folders import existing_path, list_files
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords, divide


def is_grid(records: RegionRecords, name: str) -> bool:
    """Whether the first array of a name that can be read is no list of vectors."""
    for [(place, _), *_] in records.records.values():
        try:
            return read_npz(place, [name], RECORD_BYTES)[name].ndim != 2
        except InputError:
            continue
    return False


class NpzRegions(RegionRecords):
    """Reader of the self-critical toolkits' folders `*_att/ID.npz`, `*_box/ID.npy`.

    Without a folder of boxes, features are those of a grid or have no boxes.

    Args:
        path: `pathlib.Path` of the folder that contains both folders.
    """

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        att, self.boxes = self.folder("att"), None
        if any(map(pathlib.Path.is_dir, path.glob("*_box"))):
            self.boxes = self.folder("box")
        for file in list_files(att, (".npz",)):
            self.add_named(file.stem, file, str(file))
        self.needs_sizes = self.boxes is not None
        self.has_boxes = self.needs_sizes or is_grid(self, "feat")

    def folder(self, kind: str) -> pathlib.Path:
        """Finds the only folder whose name ends in a kind, `"att"` or `"box"`."""
        folders = sorted(
            folder
            for folder in self.path.glob(f"*_{kind}")
            if folder.is_dir() and not folder.name.startswith(".")
        )
        if len(folders) != 1:
            raise InputError(f"{self.path} should hold one folder *_{kind}.")
        return folders[0]

    def read_regions(
        self, place: pathlib.Path, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        if self.boxes is None or not self.keeps_boxes:
            return read_npz(place, ["feat"], RECORD_BYTES)["feat"], None
        boxes_path = pathlib.Path(existing_path(self.boxes / f"{place.stem}.npy"))
        features = read_npz(place, ["feat"], RECORD_BYTES)["feat"]
        check_numbers(features, f"{where}: feat")
        if features.ndim > 2:  # a grid
            features = features.reshape(-1, features.shape[-1])
        with reading(boxes_path):
            boxes = read_npy(boxes_path, RECORD_BYTES)
        return features, divide(boxes, size, str(boxes_path))
