"""Captions in img2dataset's Parquet files."""

import pathlib
from collections.abc import Sequence
from typing import Any

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.fields import with_words
from keras_caption.formats.listings import CaptionedPhoto

COLUMNS = ("key", "caption", "status")
DOWNLOADED = "success"
SHARD_DIGITS = 5  # first digits of a key, the name of the folder of its photo
AT_ONCE = 1024
CAPTION_BYTES = 2**16  # of a caption
TEXTS_BYTES = 2**30  # of all texts of a file
COLUMN_BYTES = 2**28  # of a row group; img2dataset writes files of 10,000 rows


def is_img2dataset(path: pathlib.Path) -> bool:
    """Returns whether a Parquet file has img2dataset's columns."""
    with missing_extras():
        import pyarrow.parquet as pq

    check_file(path)
    with reading(path), pq.ParquetFile(path) as file:
        return {*COLUMNS} <= {*file.schema_arrow.names}


def read_img2dataset(path: pathlib.Path) -> tuple[list[CaptionedPhoto], list[str]]:
    """Reads the captions of one Parquet file, which is beside the folder of its photos.

    Rows whose photo was not downloaded are skipped and counted. A short file may hold
    one text of any length many times: columns are bounded before they are unpacked, and
    a text once, as an entry of the dictionary of its column.

    Args:
        path: `pathlib.Path` of a file with the columns `key`, `caption` and `status`.
            The photo of the key `000010002` is `00001/000010002`, with any suffix.

    Returns:
        List of `CaptionedPhoto` without suffixes, in the order of the file; and a list
        of sentences about skipped captions, which have no words.

    Raises:
        InputError: If the file is damaged, or lacks a column.
    """
    with missing_extras():
        import pyarrow.parquet as pq

    check_file(path)
    photos, failed, unpacked = [], 0, 0
    skipped: list[str] = []
    columns = list(COLUMNS)
    with reading(path):
        names = pq.read_schema(path).names
    for name in COLUMNS:
        if name not in names:
            raise InputError(
                f"{path} has no column {name}: img2dataset's files have "
                f"{', '.join(COLUMNS)}."
            )
    with reading(path), pq.ParquetFile(path, read_dictionary=columns) as file:
        check_sizes(file.metadata, columns, path, COLUMN_BYTES)
        for batch in file.iter_batches(AT_ONCE, columns=columns):
            unpacked += check_texts(batch, path)
            if unpacked > TEXTS_BYTES:
                raise InputError(
                    f"{path}: its texts take more than {TEXTS_BYTES:,} bytes, the most "
                    "that are read."
                )
            for key, caption, status in zip(*batch.select(columns), strict=True):
                if status.as_py() != DOWNLOADED:
                    failed += 1
                    continue
                key = str(key.as_py())
                where = f"{path}, key {key}"
                captions = with_words([(where, caption.as_py() or "")], skipped)
                problem = None if captions else f"{where} has no captions."
                name = f"{key[:SHARD_DIGITS]}/{key}"
                photos.append(CaptionedPhoto(name, captions, problem=problem))
    if failed:
        print(f"{path}: {failed:,} photos were not downloaded")
    return photos, skipped


def check_sizes(metadata: Any, columns: Sequence[str], path: Any, limit: int) -> None:
    """Refuses a Parquet file if columns of a row group take too much when unpacked.

    Args:
        metadata: `pyarrow.parquet.FileMetaData`.
        columns: Sequence of str, the columns that are read.
        path: Path of the file, for messages.
        limit: int, greatest number of bytes of the columns of a row group together.

    Raises:
        InputError: If they take more.
    """
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        parts = [group.column(i) for i in range(group.num_columns)]
        size = sum(
            part.total_uncompressed_size
            for part in parts
            if part.path_in_schema.partition(".")[0] in columns
        )
        if size > limit:
            raise InputError(
                f"{path}: {', '.join(columns)} take {size:,} bytes of a row "
                f"group, unpacked; at most {limit:,} are read."
            )


def check_texts(batch: Any, path: pathlib.Path) -> int:
    """Returns the number of bytes of the texts of a batch, before they are unpacked.

    Raises:
        InputError: If a column is no column of texts, or a text is too long.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    total = 0
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_dictionary(column.type):
            raise InputError(f"{path}: its {name} should be texts, not {column.type}.")
        lengths = pc.binary_length(column.dictionary)
        longest = pc.max(lengths).as_py() or 0
        if longest > CAPTION_BYTES:
            raise InputError(
                f"{path}: a {name} has {longest:,} bytes; at most {CAPTION_BYTES:,} "
                "are read."
            )
        total += pc.sum(pc.cast(lengths.take(column.indices), "int64")).as_py() or 0
    return total
