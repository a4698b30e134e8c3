"""Questions about images, as rows of a CSV file."""

import os
import pathlib

from keras_caption.errors import InputError
from keras_caption.formats.csv_rows import csv_rows

HEADER = ["image", "question"]


def read_question_rows(path: str | os.PathLike) -> list[tuple[str, str]]:
    """Reads questions, each with the image that it is about.

    Args:
        path: Path of a CSV file, plain or as `.gz`, with two columns, the image and
            the question, see `csv_rows`. A first row `image,question` is skipped.

    Returns:
        List of pairs of str, image and question.

    Raises:
        InputError: If the file is missing, damaged, or has no questions or other
            columns.
    """
    path = pathlib.Path(path)
    rows = []
    for number, (where, cells) in enumerate(csv_rows(path)):
        if len(cells) != len(HEADER):
            raise InputError(
                f"{where}, has {len(cells)} columns; it should have two, image and "
                "question."
            )
        if number or [name.lower() for name in cells] != HEADER:
            rows.append(tuple(cells))
    if not rows:
        raise InputError(f"{path} has no questions.")
    return rows
