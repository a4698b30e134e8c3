"""Results files of VQA's evaluation server: one answer for each question."""

import os

from typing_extensions import TypedDict

from keras_caption.formats.fields import QuestionId, Records, refuse_repeats
from keras_caption.formats.json_files import read_json


class Result(TypedDict):
    question_id: QuestionId
    answer: str


def read_vqa_results(path: str | os.PathLike) -> dict[int, str]:
    """Reads the answers of a results file.

    Args:
        path: Path of a JSON file, a list of objects with `question_id` and `answer`,
            plain or as `.gz`.

    Returns:
        dict from question id to str.

    Raises:
        InputError: If the file does not follow the format, or has two answers to a
            question.
    """
    results = read_json(path, Records[Result])
    refuse_repeats(path, "[].question_id", (r["question_id"] for r in results))
    return {result["question_id"]: result["answer"] for result in results}
