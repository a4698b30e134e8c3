"""SugarCrepe's pairs of a caption and a hard negative, in one JSON file."""

import os
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from keras_caption.formats.fields import ImageNumber, Records, TextWithWords
from keras_caption.formats.json_files import read_json


class Pair(TypedDict):
    image_id: ImageNumber
    caption: TextWithWords
    negative_caption: TextWithWords
    kind: Annotated[str, Field(min_length=1)]


class PairFile(TypedDict):
    pairs: Annotated[Records[Pair], Field(min_length=1)]


def read_caption_pairs(path: str | os.PathLike) -> list[Pair]:
    """Reads pairs of a caption that a person wrote and one that is almost the same.

    Args:
        path: Path of a JSON file: `pairs`, a list of `image_id`, `caption`,
            `negative_caption` and `kind`, what was changed, such as `"swap_obj"`.

    Returns:
        A list of dict.

    Raises:
        InputError: If the file does not follow the schema.
    """
    return read_json(path, PairFile)["pairs"]
