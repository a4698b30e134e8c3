"""Region features as lines of text, each of which begins with an image's id."""

import base64

import numpy as np

from keras_caption.errors import InputError
from keras_caption.formats.regions import RECORD_BYTES, Regions

LINE_BYTES = 2 * RECORD_BYTES  # base64 takes 4/3


class LinesOfImages(Regions):
    """A file with a line for each image: its id, a tab, and further fields.

    Args:
        path: The file.
        starts: Iterable of int, the bytes at which its lines start.
    """

    fields = ()

    def __init__(self, path, starts):
        super().__init__(path)
        with open(path, "rb") as file:
            for number, start in enumerate(starts, start=1):
                where = f"{path}, line {number}"
                file.seek(max(start - 1, 0))
                before = file.read(1) if start else b"\n"
                # A line that is cut short within its id is no record of another id.
                name, tab, _ = file.read(40).decode("latin1").partition("\t")
                if before != b"\n":
                    self.add_wrong(f"{where}: no line starts at byte {start}.")
                    continue
                name = name if tab else f"{name[:20]} ..."
                self.add(name, start, where, f"{where} (image {name})")

    def read_fields(self, start, where):
        """The fields of the line at a byte, a list of bytes."""
        with open(self.path, "rb") as file:
            file.seek(start)
            line = file.readline(LINE_BYTES).rstrip(b"\r\n")
        values = line.split(b"\t", len(self.fields))
        if len(values) != len(self.fields):
            raise InputError(
                f"{where} has {len(values)} fields, not {len(self.fields)}: it is cut "
                "short."
            )
        return dict(zip(self.fields, values, strict=True))


def line_starts(path):
    """The bytes at which the lines of a file start, by one pass over it."""
    start, starts = 0, []
    with open(path, "rb") as file:
        while line := file.readline(LINE_BYTES):
            if len(line) == LINE_BYTES:
                raise InputError(
                    f"{path}, line {len(starts) + 1}, is longer than {LINE_BYTES:,} "
                    "bytes: it holds no region features."
                )
            starts.append(start)
            start += len(line)
    return starts


def decode(text, where, what):
    """float32 values out of base64."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), "<f4")
    except ValueError as error:
        raise InputError(f"{where}: its {what} cannot be decoded: {error}.") from None
