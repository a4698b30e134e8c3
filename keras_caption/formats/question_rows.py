"""Questions about images, as rows of CSV, JSON or JSON Lines."""

import itertools
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.formats.caption_rows import COLUMNS
from keras_caption.formats.csv_rows import csv_rows, delimiter_of
from keras_caption.formats.json_files import parse_json, read_json
from keras_caption.formats.text_lines import (
    MARK,
    lines,
    numbered_lines,
    open_text,
    raw_lines,
    reading_lines,
)

# Names of an image in JSON and in a header: its file, or its id as VQA and GQA have it.
IMAGES = (*COLUMNS["file_name"], "image_id", "imageid")
QUESTION = "question"
FORMS = (
    "JSON of questions is a list of objects with image and question, VQA's with "
    "`questions`, GQA's by the ids of questions, or JSON Lines"
)

Rows = list[tuple[str, str]]


def read_question_rows(path: str | os.PathLike) -> Rows:
    """Reads questions, each with the image that it is about.

    Args:
        path: Path of a file, plain or as `.gz`, whose first character decides: `[` and
            `{` begin JSON, of VQA, of GQA or a list of objects, or JSON Lines. Another
            file is CSV with two columns, the image and the question, see `csv_rows`.
            A header, such as `image,question`, decides which is the first.

    Returns:
        List of pairs of str, image and question.

    Raises:
        InputError: If the file is missing, damaged, or has no questions or other
            columns.
    """
    path = pathlib.Path(path)
    first = first_lines(path)
    if first and first[0].startswith(("[", "{")):
        is_lines = is_object(first[0], needs_question=len(first) == 1)
        rows = [row_of(*x) for x in records_of(path, is_lines)]
    else:
        rows = read_csv(path)
    if not rows:
        raise InputError(f"{path} has no questions.")
    return rows


def read_csv(path: pathlib.Path) -> Rows:
    """Reads the questions of a file of CSV, see `read_question_rows`."""
    rows, step = [], 1
    delimiter = delimiter_of(lines(path), (*IMAGES, QUESTION))
    for number, (where, cells) in enumerate(csv_rows(path, delimiter)):
        if len(cells) != 2:
            raise InputError(
                f"{where}, has {len(cells)} columns; it should have two, image and "
                "question."
            )
        names = [name.lower() for name in cells]
        if not number and QUESTION in names and {*names} & {*IMAGES}:
            step = 1 if names[1] == QUESTION else -1
        else:
            image, question = cells[::step]
            rows.append((image, question))
    return rows


def first_lines(path: pathlib.Path) -> list[str]:
    """The first two lines with text; JSON in one line, of any length, is cut."""
    with reading_lines(path, lambda: 0), open_text(path) as file:
        texts = (line.decode(errors="replace") for _, line in raw_lines(file))
        texts = (text.removeprefix(MARK).strip() for text in texts)
        return [*itertools.islice(filter(None, texts), 2)]


def is_object(line: str, needs_question: bool) -> bool:
    """Returns whether a line alone is an object of JSON, perhaps with a question."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and (not needs_question or "question" in content)


def records_of(path: pathlib.Path, is_lines: bool) -> Iterator[tuple[str, Any]]:
    """Yields the name of each record of JSON, for messages, and the record.

    Args:
        path: `pathlib.Path` of the file.
        is_lines: bool, whether each line is a record.
    """
    if is_lines:
        for where, line in numbered_lines(path):
            yield where, parse_json(line, object, where)
        return
    name, content = "", read_json(path, object)
    if isinstance(content, dict) and isinstance(content.get("questions"), list):
        name, content = "questions", content["questions"]
    if isinstance(content, list):
        for number, record in enumerate(content):
            yield f"{path}: {name}[{number}]", record
    else:
        for key, record in content.items():
            yield f"{path}: question {key:.60}", record


def row_of(where: str, record: Any) -> tuple[str, str]:
    """The image and the question of a record of JSON.

    Raises:
        InputError: If the record is no object, or one of both is missing.
    """
    fields = {}
    if isinstance(record, dict):
        fields = {key.strip().lower(): value for key, value in record.items()}
    question = fields.get("question")
    image = next((fields[name] for name in IMAGES if name in fields), None)
    is_image = (isinstance(image, str) and image) or type(image) is int
    if not is_image or not isinstance(question, str):
        lacks = "image" if not is_image else "question"
        raise InputError(f"{where} has no {lacks}: {FORMS}.")
    return str(image), question
