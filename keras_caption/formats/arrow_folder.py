"""Datasets of Hugging Face that `save_to_disk` wrote: photos and captions in Arrow."""

import functools
import itertools
import pathlib
from typing import Any

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.formats.faults import reading
from keras_caption.formats.fields import with_words
from keras_caption.formats.rejected_captions import MARKS, RejectedCaptions

STATE_FILES = ("dataset_dict.json", "state.json")  # with splits, and without
CAPTIONS = ("captions", "caption", "sentences", "text", "texts", "raw")
ALL = ""  # stands for the split of a dataset without splits


def is_arrow_folder(path: pathlib.Path) -> bool:
    """Whether a folder is a dataset of Hugging Face."""
    return any((path / name).is_file() for name in STATE_FILES)


@functools.lru_cache(maxsize=4)
def open_arrow(path: pathlib.Path) -> dict[str, Any]:
    """Opens a dataset, whose images are not decoded.

    Args:
        path: `pathlib.Path` of the folder.

    Returns:
        dict from the name of a split, or `ALL`, to a `datasets.Dataset`.

    Raises:
        InputError: If it is damaged, or a split has no column of images.
    """
    with missing_extras():
        import datasets
    with reading(path):
        opened = datasets.load_from_disk(str(path))
        is_several = isinstance(opened, datasets.DatasetDict)
        splits = dict(opened) if is_several else {ALL: opened}
        for rows in splits.values():
            rows.data.validate(full=True)  # Arrow aborts at offsets outside of the file
    for split, rows in splits.items():
        column = image_column(path, rows)
        splits[split] = rows.cast_column(column, datasets.Image(decode=False))
    return splits


def image_column(path: pathlib.Path, rows: Any) -> str:
    """The name of the first column of images.

    Raises:
        InputError: If there is none.
    """
    for name, feature in rows.features.items():
        if type(feature).__name__ == "Image":
            return name
    raise InputError(
        f"{path} has no column of the feature Image: its columns are "
        f"{', '.join(rows.features)}."
    )


def caption_column(path: pathlib.Path, rows: Any) -> str:
    """The name of the column of captions, texts or lists of texts.

    Raises:
        InputError: If there is none.
    """
    for name in CAPTIONS:
        if name in rows.features:
            feature = rows.features[name]
            inner = getattr(feature, "feature", feature)
            if getattr(inner, "dtype", None) in ("string", "large_string"):
                return name
    raise InputError(
        f"{path} has no column of captions, texts or lists of texts called "
        f"{', '.join(CAPTIONS[:-1])} or {CAPTIONS[-1]}: its columns are "
        f"{', '.join(rows.features)}."
    )


def captions_of(path: pathlib.Path, split: str, skipped: list[str]) -> list[list[str]]:
    """The captions of all rows of a split.

    Those without words, or marked as rejected, see `RejectedCaptions`, are skipped.
    Marks are columns, with a value for a row or a list with one for each caption.
    """
    rows = open_arrow(path)[split]
    found, column = [], caption_column(path, rows)
    rejected = RejectedCaptions(f"{path}, {split}" if split else path)
    names = [column, *(name for name in MARKS if name in rows.features)]
    with reading(path):
        columns = [list(rows[name]) for name in names]
    for number, (value, *marks) in enumerate(zip(*columns, strict=True)):
        texts = [value] if isinstance(value, str) else list(value or ())
        where, kept = f"{path}, {split or 'row'} {number}", []
        marks = [x if isinstance(x, list) else [x] * len(texts) for x in marks]
        for text, *flags in itertools.zip_longest(texts, *marks):
            if text and rejected.counts(dict(zip(names[1:], flags, strict=True))):
                kept.append((where, text))
        found.append(with_words(kept, skipped))
    rejected.report()
    return found


def image_bytes(path: pathlib.Path, split: str, number: int) -> bytes:
    """The encoded image of a row.

    Raises:
        InputError: If the row has none.
    """
    rows = open_arrow(path)[split]
    column = image_column(path, rows)
    with reading(path):
        content = (rows[number][column] or {}).get("bytes")
    if content is None:  # a path alone may name any file, even of another machine
        raise InputError(
            f"{path}, {split or 'row'} {number} has no image: save_to_disk writes it."
        )
    return content
