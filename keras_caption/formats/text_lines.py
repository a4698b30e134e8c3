"""Lines of text files that people wrote: the one reader of them."""

import gzip
import pathlib
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from keras_caption.errors import InputError
from keras_caption.formats.faults import reason_of, refuse_pipe

LINE_BYTES = 2**20  # of the longest line that is read


def lines(path: pathlib.Path) -> Iterator[str]:
    """Lines of a text file in UTF-8, without their ends.

    Lines end in LF or CR LF, and in CR alone if the first has no LF. Another CR counts
    as a space, and a byte order mark at the start of the file is skipped. Memory does
    not grow with the file.

    Args:
        path: `pathlib.Path` of the file, plain or as `.gz`.

    Raises:
        InputError: If the file cannot be read, is a pipe or a device, is not UTF-8, or
            has a line that is longer than `LINE_BYTES`.
    """
    refuse_pipe(path)
    opened = gzip.open if path.suffix == ".gz" else open
    return lines_of(lambda: opened(path, "rb"), path)


def lines_of(open_file: Callable[[], BinaryIO], name: object) -> Iterator[str]:
    """Lines of what `open_file` opens, as of `lines`; `name` is for messages."""
    number = 0
    try:
        with open_file() as file:
            for number, line in enumerate(raw_lines(file), start=1):
                text = decode(line, f"{name}, line {number},")
                yield text.removeprefix("\ufeff") if number == 1 else text
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{name} cannot be read after line {number}: {reason_of(error)}."
        ) from None


def raw_lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines of a binary file; one that is too long is cut after `LINE_BYTES`."""
    line = file.readline(LINE_BYTES + 1)
    if b"\n" in line or b"\r" not in line:
        while line:
            yield line
            line = file.readline(LINE_BYTES + 1)
        return
    while line:  # as Macs wrote text before 2001
        *whole, rest = line.split(b"\r")
        yield from whole
        more = file.read(LINE_BYTES)
        if rest and (not more or len(rest) > LINE_BYTES):
            yield rest
        line = rest + more if more else b""


def decode(line: bytes, where: str) -> str:
    """The text of a line, without its end."""
    if len(line) > LINE_BYTES:
        raise InputError(
            f"{where} is longer than {LINE_BYTES:,} bytes: that is no sentence."
        )
    try:
        text = line.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 at byte {error.start + 1}.") from None
    return text.replace("\r", " ").replace("\n", " ")
