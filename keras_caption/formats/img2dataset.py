"""Captions in img2dataset's Parquet files."""

import pathlib

from keras_caption.errors import InputError, missing_extras
from keras_caption.formats.captioned_photo import CaptionedPhoto
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.fields import with_words

COLUMNS = ("key", "caption", "status")
DOWNLOADED = "success"
SHARD_DIGITS = 5  # first digits of a key, the name of the folder of its photo
AT_ONCE = 1024


def is_img2dataset(path: pathlib.Path) -> bool:
    """Returns whether a Parquet file has img2dataset's columns."""
    with missing_extras():
        import pyarrow.parquet as pq

    check_file(path)
    with reading(path), pq.ParquetFile(path) as file:
        return {*COLUMNS} <= {*file.schema_arrow.names}


def read_img2dataset(path: pathlib.Path) -> tuple[list[CaptionedPhoto], list[str]]:
    """Reads the captions of one Parquet file, which is beside the folder of its photos.

    Rows whose photo was not downloaded are skipped and counted.

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
    photos, skipped, failed = [], [], 0
    with reading(path), pq.ParquetFile(path) as file:
        for name in COLUMNS:
            if name not in file.schema_arrow.names:
                raise InputError(
                    f"{path} has no column {name}: img2dataset's files have "
                    f"{', '.join(COLUMNS)}."
                )
        for batch in file.iter_batches(AT_ONCE, columns=COLUMNS):
            for row in batch.to_pylist():
                if row["status"] != DOWNLOADED:
                    failed += 1
                    continue
                key, where = str(row["key"]), f"{path}, key {row['key']}"
                captions = with_words([(where, row["caption"] or "")], skipped)
                problem = None if captions else f"{where} has no captions."
                name = f"{key[:SHARD_DIGITS]}/{key}"
                photos.append(CaptionedPhoto(name, captions, problem=problem))
    if failed:
        print(f"{path}: {failed:,} photos were not downloaded")
    return photos, skipped
