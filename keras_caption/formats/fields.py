"""Types of fields that several JSON formats share, for schemas of `read_json`."""

import os
import pathlib
import re
from collections.abc import Hashable, Iterable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from keras_caption.base.arguments import FirstFault
from keras_caption.base.errors import InputError
from keras_caption.text import normalization
from keras_caption.text.normalization import split_words

Item = TypeVar("Item")

# COCO's names of photos, of 2014 and of 2017, of which the number is the image id.
COCO_NAME = re.compile(r"(?:COCO_[a-z]+[0-9]{4}_)?([0-9]{12})(?:\.jpg)?")
ID_BYTES = 255


def image_id_of(value: Any) -> int | str:
    """Normalizes the id of an image in captions, features and results.

    An id is an int of 64 bits or a str. Digits become the number, and so does a name
    such as `COCO_val2014_000000000042.jpg` or `000000000042.jpg`, so that files with
    different spellings agree. Other text, such as another name of a file or a hash,
    stays as it is.

    Raises:
        PydanticCustomError: A `ValueError`, if the value is not an id.
    """
    if isinstance(value, str):
        coco = COCO_NAME.fullmatch(value)
        digits = coco[1] if coco else value
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 19
        if is_number and int(digits) < 2**63:
            return int(digits)
        if value.isprintable() and value.strip() and len(value.encode()) <= ID_BYTES:
            return value
    elif type(value) is int and -(2**63) <= value < 2**63:
        return value
    raise PydanticCustomError(
        "image_id", "Image id should be a name or an integer of 64 bits"
    )


def nfc(id_: Hashable) -> Hashable:
    """Normalizes an id for comparison: a name is converted to Unicode's NFC.

    Names of files unpacked on a Mac are in NFD, while lists of files are in NFC.
    """
    return normalization.nfc(id_) if isinstance(id_, str) else id_


def check_words(text: str) -> str:
    if not split_words(text):
        raise PydanticCustomError("words", "Text should have at least one word")
    return text.strip()


def with_words(captions: Iterable[tuple[str, str]], skipped: list[str]) -> list[str]:
    """Keeps the captions that have words.

    Args:
        captions: Iterable of pairs of a caption's name in messages and its text.
        skipped: List of str, to which a sentence is added for each other caption.
    """
    kept = []
    for where, text in captions:
        if split_words(text):
            kept.append(text)
        else:
            skipped.append(f"{where} has no words: {text!r:.60}.")
    return kept


def check_photo_path(text: str) -> str:
    if "\\" in text:  # a path of Windows, whose drive does not exist here
        of_windows = pathlib.PureWindowsPath(text)
        text = of_windows.relative_to(of_windows.anchor).as_posix()
    path = pathlib.PurePath(text)
    if path.is_absolute() or ".." in path.parts or "\0" in text:
        raise PydanticCustomError(
            "photo_path", "Path should stay within the folder of photos"
        )
    if len(text.encode()) > 255:
        raise PydanticCustomError("photo_path", "Path should have at most 255 bytes")
    return str(path)


def check_photo_name(text: str) -> str:
    path = check_photo_path(text)
    if not pathlib.PurePath(path).name:
        raise PydanticCustomError("photo_name", "Photo should have a name")
    return path


Records = Annotated[list[Item], FirstFault()]
ImageId = Annotated[Any, AfterValidator(image_id_of)]
ImageNumber = Annotated[int, Field(ge=-(2**63), lt=2**63)]
QuestionId = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Caption = Annotated[str, AfterValidator(str.strip)]  # perhaps without words
TextWithWords = Annotated[str, AfterValidator(check_words)]
PhotoPath = Annotated[str, AfterValidator(check_photo_path)]
PhotoName = Annotated[str, AfterValidator(check_photo_name)]


def refuse_repeats(
    path: str | os.PathLike, key: str, values: Iterable[Hashable | None]
) -> None:
    """Refuses two records with the same value of a field.

    Args:
        path: Path of the file, for the error message.
        key: str, names of the list of records and of the field, such as
            `"images[].id"`.
        values: Iterable of the hashable values, in the order of the records; `None`
            for a record without the field.

    Raises:
        InputError: If a value other than `None` occurs twice.
    """
    first: dict[Hashable, int] = {}
    for number, value in enumerate(values):
        if value is not None and first.setdefault(value, number) != number:
            records, field = key.split("[].")
            raise InputError(
                f"{path}: {records}[{number}].{field} is {value!r}, as in "
                f"{records}[{first[value]}]; each may be listed only once."
            )
