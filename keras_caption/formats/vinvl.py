import pathlib

import numpy as np
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.json_files import parse_json
from keras_caption.formats.region_lines import LINE_BYTES, LinesOfImages, decode


class VinvlRecord(TypedDict):
    num_boxes: int
    features: str


class VinvlRegions(LinesOfImages):
    """Reader of VinVL's TSV, whose lines are an image id and JSON.

    The JSON has `num_boxes` and `features`, base64 of float32. The last six numbers of
    a region are x1, y1, x2, y2, width and height, divided by the image's width and
    height.

    Args:
        path: `pathlib.Path` of the TSV. Its index, the byte offsets of the lines, is a
            file beside it with the suffix `.lineidx`.
    """

    layouts = (("image_id", "json"),)

    def __init__(self, path: pathlib.Path):
        super().__init__(path, read_index(path))

    def read_regions(
        self, place: int, where: str, size: tuple[int, int] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        content = self.read_fields(place, where)["json"]
        record = parse_json(content, VinvlRecord, where)
        count = record["num_boxes"]
        numbers = decode(record["features"], where, "features")
        if count < 1 or len(numbers) % count or len(numbers) < 7 * count:
            raise InputError(
                f"{where}: num_boxes is {count}, but there are {len(numbers)} numbers."
            )
        numbers = numbers.reshape(count, -1)
        return numbers[:, :-6], numbers[:, -6:-2]


def read_index(path: pathlib.Path) -> list[int]:
    """Reads the byte offsets of the lines of a VinVL TSV from its index.

    Raises:
        InputError: If the index does not fit the file: it is larger, holds anything
            but byte offsets, or lacks the last lines.
    """
    index = path.with_suffix(".lineidx")
    if index.stat().st_size > path.stat().st_size + 2:
        raise InputError(f"{index} is larger than {path}: it is not its index.")
    starts = []
    for number, text in enumerate(index.read_bytes().split(), start=1):
        if not text.isdigit() or len(text) > 18:
            raise InputError(
                f"{index}, line {number}: {text[:40].decode('latin1')!r} is not a "
                "byte offset."
            )
        starts.append(int(text))
    with open(path, "rb") as file:
        file.seek(max(starts, default=0))
        file.readline(LINE_BYTES)
        if file.read(1):
            raise InputError(f"{path} continues after the last line of {index}.")
    return starts
