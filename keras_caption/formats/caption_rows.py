"""Captions in rows: CSV, Flickr8k's `*.token.txt`, JSON Lines and Parquet."""

import itertools
import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NotRequired

from pydantic import ValidationError
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.validation import adapter, describe
from keras_caption.formats.csv_rows import csv_rows, delimiter_of
from keras_caption.formats.faults import check_file, reading, reason_of
from keras_caption.formats.fields import Caption, PhotoName, with_words
from keras_caption.formats.listings import CaptionedPhoto
from keras_caption.formats.rejected_captions import MARKS, RejectedCaptions
from keras_caption.formats.splits import Split
from keras_caption.formats.suffixes import unpacked_suffix
from keras_caption.formats.text_lines import lines, numbered_lines

COLUMNS = {
    "file_name": ("file_name", "image", "photo", "filename", "image_name"),
    "caption": ("caption", "text", "comment", "captions", "texts"),
    "split": ("split",),
    **{mark: (mark,) for mark in MARKS},
}
NEEDED = ("file_name", "caption")
# Name and number of a caption, and the caption: `1000268201_693b08cb0e.jpg#0`, a tab.
TOKENS = re.compile(r"([^\t]+)#[0-9]+\t(.*)")
AT_ONCE = 1024  # rows of a Parquet file in memory

Rows = Iterator[tuple[str, dict[str, Any]]]


class Row(TypedDict):
    file_name: PhotoName
    caption: Caption | list[Caption | None] | None
    split: NotRequired[Split | None]


def read_caption_rows(path: pathlib.Path) -> tuple[list[CaptionedPhoto], list[str]]:
    """Reads photos from rows of captions, of which a photo may have several.

    Args:
        path: `pathlib.Path` of a file. Its suffix decides: `.jsonl` is JSON Lines and
            `.parquet` Parquet, such as the `metadata.jsonl` of Hugging Face's folders
            of images; others are CSV in UTF-8, with commas, tabs, semicolons or `|`. A
            row has a column for the photo (`file_name`, `image`, `photo`, `filename` or
            `image_name`), one for the caption (`caption`, `text` or `comment`) or a
            list of captions (or `captions` or `texts`), and optionally `split` (train,
            val or test, or a word that means one, such as validation); other columns
            are ignored. Flickr8k's `*.token.txt` has no header.

    Returns:
        List of `CaptionedPhoto`, in the order of the file; and a list of sentences
        about skipped rows, which are truncated or whose captions have no words.
        Captions that are marked as rejected are skipped too, see `RejectedCaptions`.

    Raises:
        InputError: If the file does not follow the format, has no captions, or has a
            photo in two splits.
    """
    check_file(path)
    captions: dict[str, list[str]] = {}
    split_of: dict[str, str | None] = {}
    skipped: list[str] = []
    rejected = RejectedCaptions(path)
    for where, row in read_rows(path, skipped):
        try:
            valid = adapter(Row).validate_python(row, strict=True)
        except ValidationError as error:
            raise InputError(f"{where}: {describe(error, row)}.") from None
        name, split = valid["file_name"], valid.get("split")
        if split_of.setdefault(name, split) != split:
            raise InputError(
                f"{where}: {name} is for {split}, and for {split_of[name]} above."
            )
        texts = valid["caption"]
        texts = texts if isinstance(texts, list) else [texts]
        kept = [(where, text) for text in texts if text is not None]
        kept = [pair for pair in kept if rejected.counts(row)]
        captions.setdefault(name, []).extend(with_words(kept, skipped))
    rejected.report()
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


def read_rows(path: pathlib.Path, skipped: list[str]) -> Rows:
    """Yields the position of each row, for messages, and the fields of `COLUMNS`.

    Args:
        path: `pathlib.Path` of the file.
        skipped: List of str, to which a sentence is added for each truncated row.
    """
    suffix = unpacked_suffix(path)
    if suffix == ".jsonl":
        return json_rows(path)
    if suffix == ".parquet":
        return parquet_rows(path)
    _, first = next(numbered_lines(path), ("", ""))
    if TOKENS.fullmatch(first):
        return token_rows(path, skipped)
    return header_rows(path, skipped)


def token_rows(path: pathlib.Path, skipped: list[str]) -> Rows:
    """Yields the lines of Flickr8k's `*.token.txt`, see `read_rows`."""
    for where, line in numbered_lines(path):
        if tokens := TOKENS.fullmatch(line):
            yield where, {"file_name": tokens[1], "caption": tokens[2]}
        else:
            skipped.append(
                f"{where} is cut: it should be NAME#NUMBER, a tab, a caption."
            )


def header_rows(path: pathlib.Path, skipped: list[str]) -> Rows:
    """Yields the rows of a file with a header, see `read_rows`."""
    known = itertools.chain.from_iterable(COLUMNS.values())
    delimiter = delimiter_of(lines(path), known)
    rows = csv_rows(path, delimiter)
    _, header = next(rows, (None, []))
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
        values = dict(zip(header, cells, strict=True))
        yield where, {field: values[name] for field, name in places.items()}


def json_rows(path: pathlib.Path) -> Rows:
    """Yields the lines of a file of JSON Lines, see `read_rows`."""
    for where, line in numbered_lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where} is not JSON: {reason_of(error)}.") from None
        if not isinstance(row, dict):
            raise InputError(f"{where} is no JSON object, of a photo and its caption.")
        yield where, fields_of(where, row)


def parquet_rows(path: pathlib.Path) -> Rows:
    """Yields the rows of a Parquet file, see `read_rows`."""
    with missing_extras():
        import pyarrow as pa
        import pyarrow.parquet as pq

    count = 0
    with reading(path), pq.ParquetFile(path) as file:
        where = f"{path}, unless it is img2dataset's (key, caption and status),"
        places = find_columns(where, file.schema_arrow.names)
        kind = file.schema_arrow.field(places["file_name"]).type
        if pa.types.is_dictionary(kind):  # as pandas writes categories
            kind = kind.value_type
        if kind not in (pa.string(), pa.large_string()):
            raise InputError(
                f"{path} has no names of photos in its column {places['file_name']}, "
                f"but {str(kind)[:40]}: a dataset that holds the photos themselves is "
                "the folder that save_to_disk of `datasets` writes, as --photos."
            )
        names = [*places.values()]
        for batch in file.iter_batches(AT_ONCE, columns=names):
            for row in batch.to_pylist():
                count += 1
                yield f"{path}, row {count}", {f: row[n] for f, n in places.items()}


def fields_of(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `COLUMNS` in a row; a photo may have no caption."""
    places = find_columns(where, [*row], needed=("file_name",))
    fields = {field: row[name] for field, name in places.items()}
    return {"caption": None, **fields}


def find_columns(
    where: Any, header: list[str], needed: tuple[str, ...] = NEEDED
) -> dict[str, str]:
    """Finds the column of each field.

    Args:
        where: Path of the file, or name of the row.
        header: List of str, names of columns, in any case.
        needed: tuple of str, fields that must be there.

    Returns:
        dict from field to the name of its column.

    Raises:
        InputError: If a column is missing, or several may be meant.
    """
    places = {}
    for field, names in COLUMNS.items():
        columns = [name for name in header if name.strip().lower() in names]
        if len(columns) == 1:
            [places[field]] = columns
        elif columns or field in needed:
            raise InputError(
                f"{where} should have one column {' or '.join(names)}, and has "
                f"{', '.join(header)[:200]!r}."
            )
    return places
