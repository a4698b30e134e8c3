"""Captions as a folder of text files, one for each photo, a caption in a line."""

import pathlib

from pydantic import ValidationError

from keras_caption.errors import InputError
from keras_caption.formats.captioned_photo import CaptionedPhoto
from keras_caption.formats.fields import Caption
from keras_caption.formats.folders import list_files
from keras_caption.formats.text_lines import lines
from keras_caption.validation import adapter, describe

SUFFIX = ".txt"


def read_caption_texts(folder: pathlib.Path) -> list[CaptionedPhoto]:
    """Reads the captions of all text files in a folder and below it.

    Args:
        folder: `pathlib.Path`. The captions of `a/dog.jpg` are in `a/dog.txt`, in
            UTF-8; blank lines are ignored, and hidden files.

    Returns:
        List of `CaptionedPhoto`, sorted by name. One whose file is blank has a
        `problem`.

    Raises:
        InputError: If there is no text file, one is not UTF-8, or a caption has no
            words.
    """
    paths = list_files(folder, (SUFFIX,), below=True)
    if not paths:
        raise InputError(f"There is no text file in {folder} ({SUFFIX}).")
    photos = []
    for path in paths:
        captions = read_text(path)
        photos.append(
            CaptionedPhoto(
                str(path.relative_to(folder).with_suffix("")),
                captions,
                problem=None if captions else f"{path} has no captions.",
            )
        )
    return photos


def read_text(path: pathlib.Path) -> list[str]:
    """Reads the captions of a text file."""
    captions = []
    for number, line in enumerate(lines(path), start=1):
        line = line.strip()
        if not line:
            continue
        try:
            captions.append(adapter(Caption).validate_python(line, strict=True))
        except ValidationError as error:
            problem = describe(error).removeprefix("content: ")
            raise InputError(f"{path}, line {number}: {problem}.") from None
    return captions
