"""Visual Spatial Reasoning: statements about images, true or false."""

import os
import sys
from typing import Annotated

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from keras_caption.formats.fields import ImageId, Records, TextWithWords
from keras_caption.formats.json_files import read_json
from keras_caption.formats.question import Question

TRUTHS = ("false", "true")


class Statement(TypedDict):
    image_id: ImageId
    caption: TextWithWords
    label: Annotated[int, Field(ge=0, le=1)]
    relation: Annotated[str, AfterValidator(sys.intern)]


class File(TypedDict):
    statements: Annotated[Records[Statement], Field(min_length=1)]


def read_vsr(path: str | os.PathLike) -> list[Question]:
    """Reads statements as questions whose answer is `"true"` or `"false"`.

    Args:
        path: Path of a JSON file with `statements` (`image_id`, `caption`, `label` 1
            or 0, `relation`), plain or as `.gz`.

    Returns:
        A list of `Question`; the kind is the `relation`, the id the number of the
        statement in the file.

    Raises:
        InputError: If the file does not follow the format.

    Reference:
        Liu, Emerson, Collier, "Visual Spatial Reasoning", TACL 2023.
    """
    return [
        Question(
            number,
            record["image_id"],
            record["caption"],
            (TRUTHS[record["label"]],),
            TRUTHS[record["label"]],
            record["relation"],
        )
        for number, record in enumerate(read_json(path, File)["statements"])
    ]
