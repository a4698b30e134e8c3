"""Rows of CSV files, as spreadsheets and scripts write them."""

import csv
import pathlib
import re
from collections.abc import Iterator

from keras_caption.errors import InputError
from keras_caption.formats.text_lines import lines

LINE_BREAK = re.compile(r"\s*\n\s*")


def csv_rows(
    path: pathlib.Path, delimiter: str = ","
) -> Iterator[tuple[str, list[str]]]:
    """Yields where each row of a CSV file stands, for messages, and its cells.

    Cells have no white space around them, and a line break within one counts as a
    space; rows without text are skipped.

    Args:
        path: `pathlib.Path` of a file in UTF-8, plain or as `.gz`, see
            `keras_caption.formats.text_lines.lines`.
        delimiter: str, the character between cells. Files with `"|"`, such as
            Flickr30k's, know no quotes. Defaults to a comma.

    Raises:
        InputError: If the file cannot be read, or is no CSV.
    """
    text = (line.rstrip(" ") + "\n" for line in lines(path))
    reader = csv.reader(
        text,
        strict=True,
        skipinitialspace=True,
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if delimiter == "|" else csv.QUOTE_MINIMAL,
    )
    try:
        for row in reader:
            cells = [LINE_BREAK.sub(" ", cell.strip()) for cell in row]
            if any(cells):
                yield f"{path}, line {reader.line_num}", cells
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}.") from None
