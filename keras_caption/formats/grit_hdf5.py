import math
import pathlib

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import check_numbers
from keras_caption.formats.hdf5 import names_in, open_hdf5, plain_dataset
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords

IDS, FEATURES, MASK = "image_ids", "gri_feat", "gri_mask"
MAX_IMAGES = 10_000_000


class GritRegions(RegionRecords):
    """Reader of GRIT's HDF5 files, whose datasets have a row for each image.

    `image_ids` are `(images,)`; the grids `gri_feat` are `(images, cells, D)`, without
    the cells at which `gri_mask` is True, which are padding. The cells have no boxes,
    since the file does not say how the images were resized.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        InputError: If the file has other datasets, or they differ in their lengths.
    """

    has_boxes = False
    open_file = staticmethod(open_hdf5)

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        limit = 8 * MAX_IMAGES
        ids = plain_dataset(self.file, IDS, str(path), limit)
        check_numbers(ids, f"{path}: {IDS}")
        ids = ids[()].reshape(-1).tolist()
        features = plain_dataset(self.file, FEATURES, str(path))
        self.has_mask = MASK in names_in(self.file, path)
        if self.has_mask:
            plain_dataset(self.file, MASK, str(path))
        if features.ndim != 3 or len(features) < len(ids):
            raise InputError(
                f"{path}: {FEATURES} should be an array (images, cells, features), of "
                f"at least {len(ids):,} images."
            )
        for row, image_id in enumerate(ids):
            self.add_named(str(image_id), row, f"{path}, image {image_id}")
        if "reg_feat" in self.file:
            self.notes = [f"{path}: reg_feat is not read, but {FEATURES}."]

    def read_regions(
        self, place: int, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, None]:
        dataset = self.file[FEATURES]
        row_bytes = dataset.dtype.itemsize * dataset.shape[1] * dataset.shape[2]
        if row_bytes > RECORD_BYTES:
            raise InputError(f"{where} takes {row_bytes:,} bytes of {FEATURES}.")
        features = dataset[place]
        if self.has_mask:
            mask = self.file[MASK]
            cells = math.prod(mask.shape[1:])
            if cells != len(features):
                raise InputError(
                    f"{where}: {MASK} has {cells:,} cells, and {FEATURES} "
                    f"{len(features)}."
                )
            features = features[~mask[place].reshape(-1).astype(bool)]
        return features, None


def is_grit(path: pathlib.Path) -> bool:
    """Whether an HDF5 file has the datasets of GRIT."""
    with open_hdf5(path) as file:
        return {IDS, FEATURES} <= {*names_in(file, path)}
