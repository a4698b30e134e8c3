"""Captions in text files, a file for each photo and a line for each caption."""

import pathlib

from keras_caption.base.errors import InputError
from keras_caption.formats.fields import with_words
from keras_caption.formats.folders import list_files
from keras_caption.formats.listings import CaptionedPhoto
from keras_caption.formats.text_lines import numbered_lines

SUFFIX = ".txt"


def read_caption_texts(
    folder: pathlib.Path,
) -> tuple[list[CaptionedPhoto], list[str]]:
    """Reads the captions of all text files in a folder and below it.

    Args:
        folder: `pathlib.Path`. The captions of `a/dog.jpg` are in `a/dog.txt`, in
            UTF-8; blank lines are ignored, and hidden files.

    Returns:
        List of `CaptionedPhoto`, sorted by name, and a list of sentences about skipped
        captions, which have no words. A photo without captions has a `problem`.

    Raises:
        InputError: If there is no text file, or one is not UTF-8.
    """
    paths = list_files(folder, (SUFFIX,), below=True)
    if not paths:
        raise InputError(f"There is no text file in {folder} ({SUFFIX}).")
    photos = []
    skipped: list[str] = []
    for path in paths:
        captions = read_text(path, skipped)
        photos.append(
            CaptionedPhoto(
                str(path.relative_to(folder).with_suffix("")),
                captions,
                problem=None if captions else f"{path} has no captions.",
            )
        )
    return photos, skipped


def read_text(path: pathlib.Path, skipped: list[str]) -> list[str]:
    """Reads the captions of a text file; adds to `skipped` those without words."""
    texts = ((f"{where},", line.strip()) for where, line in numbered_lines(path))
    return with_words(texts, skipped)
