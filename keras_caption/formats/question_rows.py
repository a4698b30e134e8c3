"""Questions about images, as rows of a CSV file."""

import csv
import os
import pathlib

from keras_caption.errors import InputError
from keras_caption.formats.parallel_text import lines

HEADER = ["image", "question"]


def read_question_rows(path: str | os.PathLike) -> list[tuple[str, str]]:
    """Reads questions, each with the image that it is about.

    Args:
        path: Path of a CSV file, plain or as `.gz`, with two columns, the image and
            the question. A first row `image,question` is skipped.

    Returns:
        List of pairs of str, image and question.

    Raises:
        InputError: If the file is missing, damaged, or has no questions or other
            columns.
    """
    path = pathlib.Path(path)
    reader = csv.reader(lines(path), strict=True)
    rows = []
    try:
        for row in reader:
            if len(row) != len(HEADER):
                raise InputError(
                    f"{path}, line {reader.line_num}, has {len(row)} columns; it "
                    "should have two, image and question."
                )
            if rows or row != HEADER:
                rows.append(tuple(row))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}.") from None
    if not rows:
        raise InputError(f"{path} has no questions.")
    return rows
