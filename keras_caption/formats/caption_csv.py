"""Captions as CSV with a header: a row for each caption, such as Flickr8k's."""

import pathlib
from collections.abc import Iterator
from typing import Literal, NotRequired

from pydantic import ValidationError
from typing_extensions import TypedDict

from keras_caption.errors import InputError
from keras_caption.formats.captioned_photo import CaptionedPhoto
from keras_caption.formats.csv_rows import csv_rows
from keras_caption.formats.fields import Caption, PhotoName
from keras_caption.validation import adapter, describe

COLUMNS = {
    "file_name": ("file_name", "image", "photo", "filename"),
    "caption": ("caption", "text"),
    "split": ("split",),
}
OPTIONAL = ("split",)


class Row(TypedDict):
    file_name: PhotoName
    caption: Caption
    split: NotRequired[Literal["train", "val", "test"]]


def read_caption_csv(path: pathlib.Path) -> list[CaptionedPhoto]:
    """Reads the photos of a CSV file, which may have several rows for each.

    Args:
        path: `pathlib.Path` of a file in UTF-8, with commas. Its header has a column
            for the photo (`file_name`, `image`, `photo` or `filename`), one for the
            caption (`caption` or `text`), and optionally `split` (train, val or
            test); other columns are ignored.

    Returns:
        List of `CaptionedPhoto`, in the order of the file.

    Raises:
        InputError: If the file does not follow the format, has no rows, or has a
            photo in two splits.
    """
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    captions, split_of = {}, {}
    for where, row in read_rows(path):
        name, split = row["file_name"], row.get("split")
        if split_of.setdefault(name, split) != split:
            raise InputError(
                f"{where}: {name} is for {split}, and for {split_of[name]} above."
            )
        captions.setdefault(name, []).append(row["caption"])
    if not captions:
        raise InputError(f"{path} has no rows below its header.")
    return [CaptionedPhoto(name, captions[name], split_of[name]) for name in captions]


def read_rows(path: pathlib.Path) -> Iterator[tuple[str, Row]]:
    """Yields where each row stands, for messages, and its validated content."""
    rows = csv_rows(path)
    _, header = next(rows, (None, []))
    header = [name.lower() for name in header]
    places = find_columns(path, header)
    for where, cells in rows:
        if len(cells) != len(header):
            raise InputError(
                f"{where} has {len(cells)} cells, and the header {len(header)}: "
                "captions with commas should be in quotes."
            )
        row = {field: cells[place] for field, place in places.items()}
        try:
            yield where, adapter(Row).validate_python(row, strict=True)
        except ValidationError as error:
            raise InputError(f"{where}: {describe(error)}.") from None


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
