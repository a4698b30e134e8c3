import pathlib

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import check_numbers, read_npz
from keras_caption.formats.folders import list_files
from keras_caption.formats.regions import RECORD_BYTES, RegionRecords, divide


class McanRegions(RegionRecords):
    """Reader of the features of MCAN's code and of OpenVQA, `ID.npz` for each image.

    An archive has `x`, features `(N, D)` or, as in MCAN's, `(D, N)`; `bbox`, `(N, 4)`
    in pixels; and usually the image's size, `image_w` and `image_h`. An id is a number
    or a name such as `COCO_train2014_000000000009.jpg`.

    Args:
        path: `pathlib.Path` of the folder that contains the files, at any depth.
    """

    def __init__(self, path: pathlib.Path):
        super().__init__(path)
        for file in list_files(path, (".npz",), below=True):
            self.add_named(file.stem, file, str(file))
        if not self.records:
            raise InputError(
                f"{path} should hold a folder *_att, or files IMAGE_ID.npz: region "
                "features."
            )

    def read_regions(
        self, place: pathlib.Path, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        arrays = read_npz(
            place, ["x", "bbox"], RECORD_BYTES, optional=("image_w", "image_h")
        )
        x, bbox = arrays["x"], arrays["bbox"]
        if {"image_w", "image_h"} <= {*arrays}:
            width, height = arrays["image_w"], arrays["image_h"]
            check_numbers(width, f"{where}: image_w")
            check_numbers(height, f"{where}: image_h")
            if width.size != 1 or height.size != 1:
                raise InputError(f"{where}: image_w and image_h should be numbers.")
            size = width.item(), height.item()
        boxes = divide(bbox, size, where)
        check_numbers(x, f"{where}: x")
        if x.ndim != 2 or len(boxes) not in x.shape:
            raise InputError(
                f"{where}: x has the shape {x.shape} and bbox {bbox.shape}; they "
                "should be (N, D) or (D, N), and (N, 4)."
            )
        if x.shape[0] == x.shape[1]:
            raise InputError(
                f"{where}: x has as many regions as features, so that its axes cannot "
                "be told apart."
            )
        return (x if len(x) == len(boxes) else x.T), boxes
