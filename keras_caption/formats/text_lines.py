"""Reads the lines of text files that people wrote."""

import contextlib
import gzip
import pathlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reason_of, refuse_pipe
from keras_caption.formats.suffixes import is_packed

LINE_BYTES = 2**20  # greatest length of a line
MARK = "\ufeff"  # byte order mark, at the start of a file
# What files are that begin so, if they were renamed or saved as another kind.
OTHERS = {
    b"PK\x03\x04": "a ZIP archive, such as a workbook of Excel",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel, or another document of Office",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b": "compressed by gzip without the suffix .gz",
    b"PAR1\x15": "Parquet",
    b"%PDF-": "a PDF",
    b"\xff\xd8\xff": "a photo",
    b"\x89PNG": "a photo",
}


def lines(path: pathlib.Path) -> Iterator[str]:
    """Yields the lines of a text file in UTF-8, without their ends.

    Lines end in LF or CR LF, or in CR alone if the first line has no LF. Any other CR
    becomes a space, and a byte order mark at the start is skipped. Memory use does not
    grow with the file.

    Args:
        path: `pathlib.Path` of the file, plain or as `.gz`.

    Raises:
        InputError: If the file cannot be read, is a pipe or a device, is not UTF-8, or
            has a line that is longer than `LINE_BYTES`.
    """
    return lines_of(lambda: open_text(path), path)


def lines_of(
    open_file: Callable[[], contextlib.AbstractContextManager[BinaryIO]], name: object
) -> Iterator[str]:
    """Yields the lines of a file like `lines`; `name` is used in messages."""
    number = 0
    with reading_lines(name, lambda: number), open_file() as file:
        for number, (_, line) in enumerate(raw_lines(file), start=1):
            text = decode(line, f"{name}, line {number},")
            yield text.removeprefix(MARK) if number == 1 else text


def numbered_lines(path: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yields the position of each line with text, for messages, and the line.

    Args:
        path: See `lines`.
    """
    for number, line in enumerate(lines(path), start=1):
        if line.strip():
            yield f"{path}, line {number}", line


@contextlib.contextmanager
def reading_lines(name: object, count: Callable[[], int]) -> Iterator[None]:
    """Converts errors of a file whose lines are read to `InputError`.

    Args:
        name: Name of the file in messages.
        count: Function that returns the number of lines that have been read.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        place = f" after line {count()}" if count() else ""
        raise InputError(f"{name} cannot be read{place}: {reason_of(error)}.") from None


@contextlib.contextmanager
def open_text(path: pathlib.Path) -> Iterator[BinaryIO]:
    """Opens a text file to read its bytes, unpacked if it is a `.gz`.

    Raises:
        InputError: If the path is that of a pipe or a device, or the file is no text.
    """
    refuse_pipe(path)
    opened: Any = gzip.GzipFile if is_packed(path) else open
    with opened(path, "rb") as file:
        need_text(file, path)
        yield file


def need_text(file: BinaryIO, name: object) -> None:
    """Refuses a file that begins as no text does; one of text is at its beginning then.

    Args:
        file: Binary file.
        name: Name of the file in messages.

    Raises:
        InputError: If it begins so.
    """
    begin = file.read(max(map(len, OTHERS)))
    file.seek(0)
    kinds = (kind for mark, kind in OTHERS.items() if begin.startswith(mark))
    if kind := next(kinds, "binary" if b"\0" in begin else ""):
        raise InputError(f"{name} is {kind}; text in UTF-8 is expected.")


def raw_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields the byte offset of each line of a file, and the line with its end.

    Args:
        file: Binary file, at the beginning of a line, which decides how lines end.

    Yields:
        int and bytes; a longer line is cut after `LINE_BYTES` + 1 bytes.
    """
    start, line = file.tell(), file.readline(LINE_BYTES + 1)
    if b"\r" in line and b"\n" not in line:  # as Macs wrote text before 2001
        yield from _lines_of_mac(file, start, line)
        return
    while line:
        yield start, line
        start += len(line)
        while len(line) >= LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(LINE_BYTES)  # the rest of a line that is too long
            start += len(line)
        line = file.readline(LINE_BYTES + 1)


def _lines_of_mac(file, start, chunk):
    """Yields lines that end in CR; `chunk` is the first part, at offset `start`."""
    line, length = b"", 0
    while chunk:
        *ends, last = chunk.split(b"\r")
        for end in ends:
            yield start, (line + end + b"\r")[: LINE_BYTES + 1]
            start += length + len(end) + 1
            line, length = b"", 0
        line = (line + last)[: LINE_BYTES + 1]
        length += len(last)
        chunk = file.read(LINE_BYTES)
    if line:
        yield start, line


def decode(line: bytes, where: str) -> str:
    """Decodes a line, without its end."""
    if len(line) > LINE_BYTES:
        raise InputError(
            f"{where} is longer than {LINE_BYTES:,} bytes: that is no sentence."
        )
    try:
        text = line.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 at byte {error.start + 1}.") from None
    return text.replace("\r", " ").replace("\n", " ")
