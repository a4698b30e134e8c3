"""Files that captions of photos are written to, row by row, and resumed."""

import csv
import io
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_caption.atomic import naming
from keras_caption.errors import InputError
from keras_caption.results.contact_sheet import HEAD, figure_of, photo_of
from keras_caption.results.file_names import from_text, to_text

# `photo`, `caption`, `score`, the logarithm of its probability, `confidence`, the mean
# probability of its tokens, `unsure`, whether that is too little to rely on it, and
# `objects`, see `ObjectDetector.objects_of`.
Row = dict[str, Any]
COLUMNS = ("photo", "caption", "score", "confidence", "unsure", "objects")


class CaptionFile:
    """A file of captions that grows by one row for each photo.

    A file that is there is continued: a last line that a killed process has not
    finished is removed.

    Attributes:
        done: set of str, real paths of the photos that the file has; `in` finds them
            by any path, such as `./a.jpg`, and by links.

    Args:
        path: Path of the file.

    Raises:
        InputError: If there is a file that this command has not written.
    """

    head = ""

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        content = b""
        if self.path.exists():
            if not self.path.is_file():
                raise InputError(f"{path} is not a file.")
            content = self.path.read_bytes()
        self.whole = content[: content.rfind(b"\n") + 1]
        try:
            if content and not self.whole:
                raise ValueError
            photos = self.photos_in(self.whole.decode()) if content else []
            self.done = set(map(os.path.realpath, photos))
        except (ValueError, KeyError, TypeError, csv.Error):
            raise InputError(
                f"{path} is another file than this command writes: name a new one."
            ) from None

    def photos_in(self, content: str) -> list[str]:
        """The photos of whole lines; any error means that they are not ours."""
        raise NotImplementedError

    def line(self, row: Row, pixels: np.ndarray | None) -> str:
        """The line of a row, with its end."""
        raise NotImplementedError

    def write(self, row: Row, pixels: np.ndarray | None) -> None:
        """Appends a row, unless the file has one of its photo.

        Args:
            row: `Row`.
            pixels: uint8 `(height, width, 3)`, the photo, or `None` for a clip.
        """
        if row["photo"] in self:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = self.line(row, pixels).encode()
        with naming(self.path), open(self.path, "ab") as file:
            if self.whole is not None:  # the first row that is written now
                file.truncate(len(self.whole))
                line = line if self.whole else self.head.encode() + line
                self.whole = None
            file.write(line)
        self.done.add(os.path.realpath(row["photo"]))

    def __contains__(self, photo: str) -> bool:
        return os.path.realpath(photo) in self.done


class CsvFile(CaptionFile):
    """Comma-separated values, with a header; objects are categories with scores."""

    def __init__(self, path: str | os.PathLike):
        self.head = _csv_line(COLUMNS)
        super().__init__(path)

    def photos_in(self, content: str) -> list[str]:
        header, *rows = csv.reader(io.StringIO(content, newline=""), strict=True)
        if tuple(header) != COLUMNS:
            raise ValueError
        return [from_text(photo) for photo, *_ in rows]

    def line(self, row: Row, pixels: np.ndarray | None) -> str:
        objects = "; ".join(f"{o['category']} {o['score']:.2f}" for o in row["objects"])
        numbers = f"{row['score']:.4f}", f"{row['confidence']:.4f}"
        unsure = "yes" if row["unsure"] else "no"
        return _csv_line(
            [to_text(row["photo"]), row["caption"], *numbers, unsure, objects]
        )


class JsonLinesFile(CaptionFile):
    """One JSON object in a line, with the boxes of objects."""

    def photos_in(self, content: str) -> list[str]:
        return [json.loads(line)["photo"] for line in lines_of(content)]

    def line(self, row: Row, pixels: np.ndarray | None) -> str:
        is_text = to_text(row["photo"]) == row["photo"]
        return json.dumps(row, ensure_ascii=not is_text) + "\n"


class SheetFile(CaptionFile):
    """A contact sheet in HTML: small photos, with objects and captions."""

    head = HEAD

    def photos_in(self, content: str) -> list[str]:
        if not content.startswith(self.head):
            raise ValueError
        return [photo_of(line) for line in lines_of(content[len(self.head) :])]

    def line(self, row: Row, pixels: np.ndarray | None) -> str:
        return figure_of(row, pixels) + "\n"


FILES: dict[str, Callable[[str], CaptionFile]] = {
    ".csv": CsvFile,
    ".jsonl": JsonLinesFile,
    ".html": SheetFile,
}


def open_caption_file(path: str) -> CaptionFile:
    """Opens a file of captions, whose suffix says its format.

    Raises:
        InputError: If the suffix is another, or there is a file that this command has
            not written.
    """
    suffix = pathlib.Path(path).suffix.lower()
    if suffix not in FILES:
        raise InputError(f"{path} should end in {', '.join(FILES)}.")
    return FILES[suffix](path)


def lines_of(content: str) -> list[str]:
    """Whole lines; `str.splitlines` splits at characters within them too."""
    return content.split("\n")[:-1]


def _csv_line(values):
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()
