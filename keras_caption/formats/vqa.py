"""VQA's questions and annotations, in the official JSON format."""

import collections
import os
import pathlib
import sys
from typing import Annotated, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import existing_folder
from keras_caption.formats.fields import (
    ImageId,
    QuestionId,
    Records,
    TextWithWords,
    refuse_repeats,
)
from keras_caption.formats.folders import list_files
from keras_caption.formats.json_files import read_json
from keras_caption.formats.question import Question
from keras_caption.formats.splits import SPLITS, splits_in

ANNOTATORS = 10

# One object for each distinct text: a file holds millions, few of them distinct.
Text = Annotated[str, AfterValidator(sys.intern)]


class Answer(TypedDict):
    answer: Text


def texts_of(answers: list[Answer]) -> tuple[str, ...]:
    return tuple(answer["answer"] for answer in answers)


Answers = Annotated[
    list[Answer],
    Field(min_length=ANNOTATORS, max_length=ANNOTATORS),
    AfterValidator(texts_of),
]


class Asked(TypedDict):
    question_id: QuestionId
    image_id: ImageId
    question: TextWithWords


class Annotation(TypedDict):
    question_id: QuestionId
    image_id: ImageId
    question_type: Text
    answer_type: Text
    multiple_choice_answer: NotRequired[Text]
    answers: Answers


class QuestionsFile(TypedDict):
    questions: Annotated[Records[Asked], Field(min_length=1)]


class AnnotationsFile(TypedDict):
    annotations: Records[Annotation]


def find_vqa(
    folder: str | os.PathLike,
) -> dict[str, tuple[pathlib.Path, pathlib.Path | None]]:
    """Finds the files of VQA in a folder.

    Args:
        folder: Path of a folder with files whose names contain `questions` or
            `annotations`, and a split as a word, see `splits_in`, such as
            `v2_OpenEnded_mscoco_train2014_questions.json`; plain or as `.gz`. If the
            folder has the official questions of test2015 and of test-dev2015, which is
            a part of it, those of test2015 are read.

    Returns:
        dict from split to the path of its questions, and that of its annotations or
        `None`. Splits without questions are missing.

    Raises:
        InputError: If the folder is missing, or if it has several files of one kind and
            split, annotations without questions, or no questions for train or val.
    """
    folder = existing_folder(folder)
    files = {}
    for split in SPLITS:
        questions, annotations = (
            find_file(folder, split, kind) for kind in ("questions", "annotations")
        )
        if questions is not None:
            files[split] = questions, annotations
        elif annotations is not None:
            raise InputError(f"{annotations} has no file of questions beside it.")
    for split in ("train", "val"):
        if files.get(split, (None, None))[1] is None:
            raise InputError(
                f"{folder} has no questions and annotations for {split!r}: files "
                f"named *{split}*questions*.json and *{split}*annotations*.json, or "
                "with the words in another order, plain or as .gz."
            )
    return files


def find_file(folder: pathlib.Path, split: str, kind: str) -> pathlib.Path | None:
    """Finds the file of a kind and split in a folder; returns `None` if none exists."""
    paths = [
        path
        for path in list_files(folder, (".json", ".json.gz"))
        if kind in path.name.lower() and splits_in(path.name) == [split]
    ]
    if len(paths) > 1:
        paths = [path for path in paths if "test-dev" not in path.name] or paths
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise InputError(f"{folder} has several files of {split} {kind}: {names}.")
    return paths[0] if paths else None


def read_vqa(
    questions: str | os.PathLike, annotations: str | os.PathLike | None = None
) -> list[Question]:
    """Reads the questions of a split of VQA.

    Args:
        questions: Path of a JSON file with `questions` (`question_id`, `image_id`,
            `question`), plain or as `.gz`.
        annotations: Path of a JSON file with `annotations` (`question_id`, `image_id`,
            `question_type`, `answer_type`, ten `answers`, each with an `answer`, and
            `multiple_choice_answer`, by default the most frequent answer); or `None`
            for questions whose answers are unknown.

    Returns:
        A list of `Question`, in the order of the file of questions.

    Raises:
        InputError: If a file does not follow the format or lists a question twice, or
            the annotations are not those of the questions.
    """
    asked = read_json(questions, QuestionsFile)["questions"]
    ids = [record["question_id"] for record in asked]
    refuse_repeats(questions, "questions[].question_id", ids)
    if annotations is None:
        return [Question(r["question_id"], r["image_id"], r["question"]) for r in asked]
    records = read_json(annotations, AnnotationsFile)["annotations"]
    annotated = [record["question_id"] for record in records]
    refuse_repeats(annotations, "annotations[].question_id", annotated)
    image_of = {record["question_id"]: record["image_id"] for record in asked}
    for number, record in enumerate(records):
        where = f"{annotations}: annotations[{number}]"
        question_id, image_id = record["question_id"], record["image_id"]
        if question_id not in image_of:
            raise InputError(
                f"{where} is of question {question_id}, which is not in {questions}."
            )
        if image_of[question_id] != image_id:
            raise InputError(
                f"{where} says that question {question_id} is about image {image_id}; "
                f"in {questions} it is about image {image_of[question_id]}."
            )
    by_id = dict(zip(annotated, records, strict=True))
    for question_id in ids:
        if question_id not in by_id:
            raise InputError(
                f"{questions}: question {question_id} has no annotation in "
                f"{annotations}."
            )
    return [_answered(record, by_id[record["question_id"]]) for record in asked]


def _answered(asked, annotation):
    answers = annotation["answers"]
    [(commonest, _)] = collections.Counter(answers).most_common(1)
    return Question(
        asked["question_id"],
        asked["image_id"],
        asked["question"],
        answers,
        annotation.get("multiple_choice_answer", commonest),
        annotation["question_type"],
        annotation["answer_type"],
    )
