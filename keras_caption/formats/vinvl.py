from typing_extensions import TypedDict

from keras_caption.errors import InputError
from keras_caption.formats.json_files import parse_json
from keras_caption.formats.lines import LINE_BYTES, LinesOfImages, decode


class VinvlRecord(TypedDict):
    num_boxes: int
    features: str


class VinvlRegions(LinesOfImages):
    """VinVL's TSV: a line is an image id and JSON; `.lineidx` says where lines start.

    The JSON has `num_boxes` and `features`, base64 of float32, whose last six numbers
    of a region are x1, y1, x2, y2, width and height, divided by the image's.

    Args:
        path: The TSV. Its index lies beside it, with the suffix `.lineidx`.
    """

    fields = ("image_id", "json")

    def __init__(self, path):
        super().__init__(path, read_index(path))

    def read_record(self, place, where, size):
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


def read_index(path):
    """The bytes at which the lines of a VinVL TSV start, from its index.

    Raises:
        InputError: If the index is not one of this file: it is longer, holds anything
            but numbers of bytes, or misses the last lines.
    """
    index = path.with_suffix(".lineidx")
    if index.stat().st_size > path.stat().st_size + 2:
        raise InputError(f"{index} is larger than {path}: it is not its index.")
    starts = []
    for number, text in enumerate(index.read_bytes().split(), start=1):
        if not text.isdigit() or len(text) > 18:
            raise InputError(
                f"{index}, line {number}: {text[:40].decode('latin1')!r} is no number "
                "of a byte."
            )
        starts.append(int(text))
    with open(path, "rb") as file:
        file.seek(max(starts, default=0))
        file.readline(LINE_BYTES)
        if file.read(1):
            raise InputError(f"{path} goes on after the last line of {index}.")
    return starts
