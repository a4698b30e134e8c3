"""Rows of lists: CSV as written by spreadsheets, scripts and people."""

import collections
import functools
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from keras_caption.base.errors import InputError
from keras_caption.formats.text_lines import (
    LINE_BYTES,
    MARK,
    decode,
    open_text,
    raw_lines,
    reading_lines,
)

DELIMITERS = ",\t;|"
UNQUOTED = "\t|"  # delimiters of files in which a lone quotation mark is text
LINE_BREAK = re.compile(r"\s*\n\s*")
SEPARATOR = re.compile(rf'"?sep=([{DELIMITERS}])"?', re.IGNORECASE)  # of Excel


def csv_rows(
    path: pathlib.Path, delimiter: str = ","
) -> Iterator[tuple[str, list[str]]]:
    """Yields the position of each row of a CSV file, for messages, and its cells.

    Cells are stripped of white space; a line break within a cell becomes a space. Rows
    without text are skipped, and the line `sep=;` before the header.

    Args:
        path: `pathlib.Path` of a file in UTF-8, plain or as `.gz`, see
            `keras_caption.formats.text_lines.lines`.
        delimiter: str, the character between cells, see `split_row`. Defaults to a
            comma.

    Raises:
        InputError: If the file or a row cannot be read, see `cells_of`.
    """
    number, is_before = 1, True  # no row has been yielded
    with reading_lines(path, lambda: number - 1), open_text(path) as file:
        for start, lines in raw_rows(file, delimiter):
            cells = cells_of(lines, f"{path}, line {number},", delimiter, start == 0)
            if any(cells) and not (is_before and is_separator(lines)):
                yield f"{path}, line {number}", cells
                is_before = False
            number += len(lines)


def is_separator(lines: list[bytes]) -> bool:
    """Whether a row from `raw_rows` is Excel's `sep=;`, which names the delimiter."""
    text = b"".join(lines).decode("utf-8", "replace").removeprefix(MARK)
    return SEPARATOR.fullmatch(text.strip(" \r\n")) is not None


def raw_rows(
    file: BinaryIO, delimiter: str | None
) -> Iterator[tuple[int, list[bytes]]]:
    """Yields the byte offset of each row of a list, and its lines.

    A row is one line, or several lines if a quoted cell contains line breaks. An
    unclosed quotation mark, as in `12" board`, never joins the following rows.

    Args:
        file: Binary file, at the beginning of a row.
        delimiter: str, see `split_row`, or `None` for a file whose rows are lines.
    """
    lines = raw_lines(file)
    # Lines that were read ahead: those that are all within a quoted cell, then perhaps
    # one that is not, and its state. Each is looked at once, not again for each row.
    waiting: collections.deque[tuple[int, bytes]] = collections.deque()
    held = size = 0  # number and bytes of the former
    after = None
    while first := waiting.popleft() if waiting else next(lines, None):
        start, line = first
        if held:
            held, size = held - 1, size - len(line)
        else:
            after = None
        row = [line]
        if _state(line, delimiter) is OPEN:
            while after is None and len(line) + size <= LINE_BYTES:
                if (following := next(lines, None)) is None:
                    break
                waiting.append(following)
                state = _state(following[1], delimiter, is_inside=True)
                if state is OPEN:
                    held, size = held + 1, size + len(following[1])
                else:
                    after = state
            if after is CLOSED and len(line) + size <= LINE_BYTES:
                row += [text for _, text in waiting]
                waiting.clear()
                held, size, after = 0, 0, None
        yield start, row


def cells_of(
    lines: Iterable[bytes], where: str, delimiter: str, is_first: bool = False
) -> list[str]:
    """Splits and decodes the cells of a row, see `csv_rows`.

    Args:
        lines: Iterable of bytes, from `raw_rows`.
        where: str, name of the row in messages.
        delimiter: See `split_row`.
        is_first: bool, whether the row begins the file, perhaps with a byte order mark.

    Raises:
        InputError: If the row is not UTF-8, is too long, or may be truncated: a cell
            begins with a quotation mark and does not end with one.
    """
    text = "\n".join(decode(line, where) for line in lines)
    text = text.removeprefix(MARK) if is_first else text
    cells, is_open = split_row(text, delimiter)
    if is_open and delimiter not in UNQUOTED:
        raise InputError(
            f"{where} begins a cell with a quotation mark that is not closed."
        )
    return [LINE_BREAK.sub(" ", cell.strip()) for cell in cells]


def split_row(row: str, delimiter: str, start: int = 0) -> tuple[list[str], bool]:
    """Splits a row into its cells.

    A cell may be quoted, with each quotation mark inside doubled, if only spaces are
    between the quotes and the delimiters. Other quotation marks are text. Files with
    `"|"`, such as Flickr30k's, have no quoting; cells between tabs contain no tabs.

    Args:
        row: str.
        delimiter: str, one of `DELIMITERS`.
        start: int, index of the first character of the first cell.

    Returns:
        A list of str, and whether the last cell begins with an unclosed quotation mark.
    """
    patterns = _patterns(delimiter)
    cells: list[str] = []
    end = delimiter
    while end:
        quoted = patterns.quoted.match(row, start)
        if not quoted and patterns.unclosed.match(row, start):
            return [*cells, *row[start:].split(delimiter)], True
        match = quoted or patterns.plain.match(row, start)
        cells.append(match[1].replace('""', '"') if quoted else match[1])
        start, end = match.end(), match[2]
    return cells, False


def delimiter_of(lines: Iterable[str], columns: Iterable[str]) -> str:
    """Finds the delimiter of a file.

    It is the one in Excel's first line, `sep=;`, or else the one that splits the
    header, the first line with text, into the most known columns.

    Args:
        lines: Iterable of str, the first lines of the file.
        columns: Iterable of str, names of columns in lower case.
    """
    known, header = set(columns), ""
    for line in lines:
        text = line.removeprefix(MARK).strip(" \r\n")
        if separator := SEPARATOR.fullmatch(text):
            return separator[1]
        if text.strip():
            header = text
            break

    def number(delimiter):
        cells = header.lower().split(delimiter)
        return len(known & {cell.strip(' "') for cell in cells})

    return max(DELIMITERS, key=number)  # a comma on a tie


# State at the end of a line: within a quoted cell, after it, or not in a quoted cell at
# all, if what looked like its beginning was text.
OPEN, CLOSED, NONE = "open", "closed", "none"
Patterns = collections.namedtuple("Patterns", ["quoted", "unclosed", "rest", "plain"])


def _state(line, delimiter, is_inside=False):
    """Returns the state at the end of a line; it may begin within a quoted cell."""
    if delimiter is None or not (is_inside or b'"' in line):
        return CLOSED
    text, start = line.rstrip(b"\r\n").decode("latin-1"), 0
    if is_inside:
        rest = _patterns(delimiter).rest.match(text)
        if rest is None:
            return NONE
        if rest[1] is None:  # the whole line is within the cell
            return OPEN
        if not rest[1]:
            return CLOSED
        start = rest.end()
    _, is_open = split_row(text, delimiter, start)
    return OPEN if is_open else CLOSED


@functools.cache
def _patterns(delimiter):
    """Compiles expressions for cells, with the delimiter or the end of the row."""
    end = rf"({re.escape(delimiter)}|\Z)"
    plain = re.compile(rf"([^{re.escape(delimiter)}]*+){end}")
    if delimiter == "|":
        never = re.compile(r"(?!)")
        return Patterns(never, never, never, plain)
    character = r'[^"\t]' if delimiter == "\t" else '[^"]'
    content = rf'{character}*+(?:""{character}*+)*+'
    return Patterns(
        re.compile(rf' *"({content})" *{end}'),
        re.compile(rf' *"{content}\Z'),
        re.compile(rf'{content}(?:\Z|" *{end})'),
        plain,
    )
