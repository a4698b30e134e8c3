"""COCO-QA: questions with one-word answers, generated from COCO's captions."""

import os
import sys
from typing import Annotated, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from keras_caption.formats.fields import (
    ImageId,
    QuestionId,
    Records,
    TextWithWords,
    refuse_repeats,
)
from keras_caption.formats.json_files import read_json
from keras_caption.formats.question import Question
from keras_caption.formats.splits import Split

Word = Annotated[str, Field(min_length=1), AfterValidator(sys.intern)]


class Record(TypedDict):
    question_id: QuestionId
    image_id: ImageId
    question: TextWithWords
    answer: Word
    type: Word
    split: NotRequired[Split]


class File(TypedDict):
    questions: Annotated[Records[Record], Field(min_length=1)]


def read_coco_qa(path: str | os.PathLike) -> list[Question]:
    """Reads the questions of COCO-QA.

    Args:
        path: Path of a JSON file with `questions` (`question_id`, `image_id`,
            `question`, `answer`, `type`, perhaps `split`), plain or as `.gz`.

    Returns:
        A list of `Question`; the kind is the `type`.

    Raises:
        InputError: If the file does not follow the format, or lists a question twice.

    Reference:
        Ren, Kiros, Zemel, "Exploring Models and Data for Image Question Answering",
        NIPS 2015.
    """
    records = read_json(path, File)["questions"]
    refuse_repeats(path, "questions[].question_id", (r["question_id"] for r in records))
    return [
        Question(
            record["question_id"],
            record["image_id"],
            record["question"],
            (record["answer"],),
            record["answer"],
            record["type"],
            split=record.get("split"),
        )
        for record in records
    ]
