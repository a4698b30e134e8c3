import pathlib

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.region_lines import (
    LinesOfImages,
    counted_regions,
    decode,
    line_starts,
)


class TsvRegions(LinesOfImages):
    """Reader of the original bottom-up attention TSV and of LXMERT's.

    Args:
        path: `pathlib.Path` of the file, which is indexed in one pass. Its lines have
            the fields of one of the `layouts`; boxes, in pixels, and features are
            base64 of float32.
    """

    layouts = (
        ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features"),
        (
            *("image_id", "image_h", "image_w", "objects_id", "objects_conf"),
            *("attrs_id", "attrs_conf", "num_boxes", "boxes", "features"),
        ),
    )

    unlike = ", or VinVL's, whose .lineidx should be beside it"

    def __init__(self, path: pathlib.Path):
        super().__init__(path, line_starts(path))

    def read_regions(
        self, place: int, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        values = self.read_fields(place, where)
        try:
            width, height = float(values["image_w"]), float(values["image_h"])
            count = int(values["num_boxes"])
        except ValueError as error:
            raise InputError(f"{where}: {error}.") from None
        features, boxes = (
            decode(values[name], where, name) for name in ("features", "boxes")
        )
        return counted_regions(features, boxes, count, (width, height), where)
