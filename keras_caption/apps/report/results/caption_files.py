"""Files that captions of photos are written to, row by row, and resumed."""

import csv
import io
import json
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_caption.apps.report.results.contact_sheet import (
    HEAD,
    SIDE,
    figure_of,
    photo_of,
)
from keras_caption.apps.report.results.file_names import from_text, to_text
from keras_caption.apps.report.results.parquet_rows import schema_of, writing_rows
from keras_caption.base.atomic import naming, replacing
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.suffixes import suffix_of

# `photo`, `caption`, and `score`, `confidence`, `unsure`, `doubt`, `objects` and
# `links` of a `keras_caption.predict.Prediction`. If several captions are wanted,
# `n_best` has those that were found, the best first: dicts of `caption` and `score`.
Row = dict[str, Any]
COLUMNS = (
    *("photo", "caption", "score", "confidence", "unsure"),
    *("doubt", "objects"),
)


class CaptionFile:
    """A file of captions that grows by one row for each photo.

    A file that is there is continued: a last line that a killed process has not
    finished is removed.

    Attributes:
        done: set of str, real paths of the photos that the file has; `in` finds them
            by any path, such as `./a.jpg`, and by links.
        side: int, pixels of the longer side of the photos that the file shows, or
            `None` if it shows none.

    Args:
        path: Path of the file.
        n_best: int, number of captions that are wanted of each photo.

    Raises:
        InputError: If there is a file that this command has not written.
    """

    head = ""
    side: int | None = None

    def __init__(self, path: str | os.PathLike, n_best: int = 1):
        self.path = pathlib.Path(path)
        self.n_best = n_best
        content = b""
        if self.path.exists():
            if not self.path.is_file():
                raise InputError(f"{path} is not a file.")
            content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        self.whole: bytes | None = whole  # until a row is written
        try:
            if content and not whole:
                raise ValueError
            photos = self.photos_in(whole.decode()) if content else []
            self.done = set(map(os.path.realpath, photos))
        except (ValueError, KeyError, TypeError, csv.Error):
            raise another_file(path) from None

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
            pixels: uint8 `(height, width, 3)`, the photo, no smaller than `side`; or
                `None` if the file shows none.
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

    def close(self) -> None:
        """Completes the file, of which every row is written already."""


class CsvFile(CaptionFile):
    """Comma-separated values, with a header; objects are categories with scores.

    Captions after the best one, and their scores, have columns with their numbers.
    """

    def __init__(self, path: str | os.PathLike, n_best: int = 1):
        numbers = range(2, n_best + 1)
        others = [f"{name}_{i}" for i in numbers for name in ("caption", "score")]
        self.head = _csv_line([*COLUMNS, *others])
        super().__init__(path, n_best)

    def photos_in(self, content: str) -> list[str]:
        if not content.startswith(self.head):
            raise ValueError
        _, *rows = csv.reader(io.StringIO(content, newline=""), strict=True)
        return [from_text(photo) for photo, *_ in rows]

    def line(self, row: Row, pixels: np.ndarray | None) -> str:
        objects = "; ".join(f"{o['category']} {o['score']:.2f}" for o in row["objects"])
        numbers = f"{row['score']:.4f}", f"{row['confidence']:.4f}"
        unsure = "yes" if row["unsure"] else "no"
        others = []
        for other in row.get("n_best", [])[1:]:
            others += [other["caption"], f"{other['score']:.4f}"]
        others += [""] * (2 * (self.n_best - 1) - len(others))
        sure = *numbers, unsure, row["doubt"]
        return _csv_line(
            [to_text(row["photo"]), row["caption"], *sure, objects, *others]
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
    side = SIDE

    def photos_in(self, content: str) -> list[str]:
        if not content.startswith(self.head):
            raise ValueError
        return [photo_of(line) for line in lines_of(content[len(self.head) :])]

    def line(self, row: Row, pixels: np.ndarray | None) -> str:
        assert pixels is not None  # of `side` pixels
        return figure_of(row, pixels) + "\n"


class ParquetFile:
    """A Parquet table, with the boxes of objects, as a `CaptionFile`.

    A table cannot grow: until it is closed, its new rows are in `FILE.jsonl`. This file
    is removed then; after a process is killed, the next one continues it.
    """

    side = None

    def __init__(self, path: str | os.PathLike, n_best: int = 1):
        with missing_extras():
            import pyarrow
            import pyarrow.parquet
        columns = (*COLUMNS, "links", *(["n_best"] if n_best > 1 else []))
        self.schema = schema_of(columns, "caption")
        self.path = pathlib.Path(path)
        self.stored: set[str] = set()
        if self.path.exists():
            try:
                file = pyarrow.parquet.ParquetFile(self.path)
                if not file.schema_arrow.equals(self.schema):
                    raise another_file(path)
                for batch in file.iter_batches(columns=["photo"]):
                    self.stored.update(map(_real_path, batch["photo"].to_pylist()))
            except (OSError, pyarrow.ArrowException):
                raise another_file(path) from None
        self.new = JsonLinesFile(f"{path}.jsonl")

    @property
    def done(self) -> set[str]:
        return self.stored | self.new.done

    def __contains__(self, photo: str) -> bool:
        return os.path.realpath(photo) in self.stored or photo in self.new

    def write(self, row: Row, pixels: np.ndarray | None) -> None:
        if row["photo"] not in self:
            self.new.write(row, pixels)

    def close(self) -> None:
        """Writes the table anew, with its new rows."""
        if not self.new.path.exists():
            return
        import pyarrow.parquet

        with (
            replacing(self.path) as partial,
            writing_rows(partial, self.schema) as write,
        ):
            if self.path.exists():
                for batch in pyarrow.parquet.ParquetFile(self.path).iter_batches():
                    for row in batch.to_pylist():
                        write(row)
            with open(self.new.path, encoding="utf-8", newline="\n") as file:
                rows = (json.loads(line) for line in file if line.endswith("\n"))
                for row in rows:
                    if os.path.realpath(row["photo"]) not in self.stored:
                        write({**row, "photo": to_text(row["photo"])})
        self.new.path.unlink()


WRITERS: dict[str, Callable[[str, int], CaptionFile | ParquetFile]] = {
    ".csv": CsvFile,
    ".jsonl": JsonLinesFile,
    ".html": SheetFile,
    ".parquet": ParquetFile,
}


def open_caption_file(path: str, n_best: int = 1) -> CaptionFile | ParquetFile:
    """Opens a file of captions, whose suffix says its format.

    Args:
        path, n_best: Of `CaptionFile`.

    Raises:
        InputError: If the suffix is another, or there is a file that this command has
            not written.
    """
    suffix = suffix_of(path)
    if suffix not in WRITERS:
        raise InputError(f"{path} should end in {', '.join(WRITERS)}.")
    return WRITERS[suffix](path, n_best)


def another_file(path: str | os.PathLike) -> InputError:
    """The error about a file that is not continued."""
    return InputError(
        f"{path} is another file than this command writes: name a new one."
    )


def lines_of(content: str) -> list[str]:
    """Whole lines; `str.splitlines` splits at characters within them too."""
    return content.split("\n")[:-1]


def _real_path(photo):
    return os.path.realpath(from_text(photo))


def _csv_line(values):
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()
