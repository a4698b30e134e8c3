"""Captions, one in each row: CSV with a header, or Flickr8k's `*.token.txt`."""

import itertools
import pathlib
import re
from collections.abc import Iterator
from typing import Literal, NotRequired

from pydantic import ValidationError
from typing_extensions import TypedDict

from keras_caption.errors import InputError
from keras_caption.formats.captioned_photo import CaptionedPhoto
from keras_caption.formats.csv_rows import csv_rows, delimiter_of
from keras_caption.formats.faults import check_file
from keras_caption.formats.fields import Caption, PhotoName, with_words
from keras_caption.formats.text_lines import lines
from keras_caption.validation import adapter, describe

COLUMNS = {
    "file_name": ("file_name", "image", "photo", "filename", "image_name"),
    "caption": ("caption", "text", "comment"),
    "split": ("split",),
}
OPTIONAL = ("split",)
# Name and number of a caption, and the caption: `1000268201_693b08cb0e.jpg#0`, a tab.
TOKENS = re.compile(r"([^\t]+)#[0-9]+\t(.*)")


class Row(TypedDict):
    file_name: PhotoName
    caption: Caption
    split: NotRequired[Literal["train", "val", "test"]]


def read_caption_csv(path: pathlib.Path) -> tuple[list[CaptionedPhoto], list[str]]:
    """Reads photos from rows of captions, of which a photo may have several.

    Args:
        path: `pathlib.Path` of a file in UTF-8, with commas, tabs, semicolons or `|`.
            Its header has a column for the photo (`file_name`, `image`, `photo`,
            `filename` or `image_name`), one for the caption (`caption`, `text` or
            `comment`), and optionally `split` (train, val or test); other columns are
            ignored. Flickr8k's `*.token.txt` has no header.

    Returns:
        List of `CaptionedPhoto`, in the order of the file; and a list of sentences
        about skipped rows, which are truncated or whose captions have no words.

    Raises:
        InputError: If the file does not follow the format, has no captions, or has a
            photo in two splits.
    """
    check_file(path)
    captions, split_of, skipped = {}, {}, []
    for where, row in read_rows(path, skipped):
        name, split = row["file_name"], row.get("split")
        if split_of.setdefault(name, split) != split:
            raise InputError(
                f"{where}: {name} is for {split}, and for {split_of[name]} above."
            )
        texts = with_words([(where, row["caption"])], skipped)
        captions.setdefault(name, []).extend(texts)
    if not any(captions.values()):
        raise InputError(skipped[0] if skipped else f"{path} has no rows of captions.")
    photos = [
        CaptionedPhoto(
            name,
            texts,
            split_of[name],
            problem=None if texts else f"{path}: {name} has no captions.",
        )
        for name, texts in captions.items()
    ]
    return photos, skipped


def read_rows(path: pathlib.Path, skipped: list[str]) -> Iterator[tuple[str, Row]]:
    """Yields the position of each row, for messages, and its validated content.

    Args:
        path: `pathlib.Path` of the file.
        skipped: List of str, to which a sentence is added for each truncated row.
    """
    first = next((line for line in lines(path) if line.strip()), "")
    rows = token_rows if TOKENS.fullmatch(first) else header_rows
    for where, row in rows(path, first, skipped):
        try:
            yield where, adapter(Row).validate_python(row, strict=True)
        except ValidationError as error:
            raise InputError(f"{where}: {describe(error, row)}.") from None


def token_rows(
    path: pathlib.Path, first: str, skipped: list[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the lines of Flickr8k's `*.token.txt`, see `read_rows`."""
    for number, line in enumerate(lines(path), start=1):
        where = f"{path}, line {number}"
        if tokens := TOKENS.fullmatch(line):
            yield where, {"file_name": tokens[1], "caption": tokens[2]}
        elif line.strip():
            skipped.append(
                f"{where} is cut: it should be NAME#NUMBER, a tab, a caption."
            )


def header_rows(
    path: pathlib.Path, first: str, skipped: list[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the rows of a file with a header, see `read_rows`.

    Args:
        path: `pathlib.Path` of the file.
        first: str, its first line with text.
        skipped: See `read_rows`.
    """
    known = itertools.chain.from_iterable(COLUMNS.values())
    delimiter = delimiter_of(first, known)
    rows = csv_rows(path, delimiter)
    _, header = next(rows, (None, []))
    header = [name.lower() for name in header]
    places = find_columns(path, header)
    for where, cells in rows:
        if len(cells) > len(header):
            raise InputError(
                f"{where} has {len(cells)} cells, and the header {len(header)}: "
                f"a caption with {delimiter!r} in it should be in quotes."
            )
        if len(cells) < len(header):
            skipped.append(
                f"{where} is cut: it has {len(cells)} cells, and the header "
                f"{len(header)}."
            )
            continue
        yield where, {field: cells[place] for field, place in places.items()}


def find_columns(path: pathlib.Path, header: list[str]) -> dict[str, int]:
    """Finds the number of the column of each field.

    Raises:
        InputError: If a column is missing, or several may be meant.
    """
    places = {}
    for field, names in COLUMNS.items():
        columns = [place for place, name in enumerate(header) if name in names]
        if len(columns) == 1:
            places[field] = columns[0]
        elif columns or field not in OPTIONAL:
            raise InputError(
                f"{path} should have one column {' or '.join(names)} in its header, "
                f"which is {', '.join(header)[:200]!r}."
            )
    return places
