"""Files on any of Beam's file systems."""

import contextlib
import glob
import gzip
import os
import re
import uuid
from collections.abc import Iterator
from typing import BinaryIO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from keras_caption.errors import InputError
from keras_caption.formats.faults import reason_of

PLAIN = CompressionTypes.UNCOMPRESSED
PACKED = (".gz", ".tgz")


def open_file(path: str) -> BinaryIO:
    """Opens a file to read bytes, unpacked if it is a `.gz`."""
    file = FileSystems.open(path, compression_type=PLAIN)
    return gzip.open(file) if path.endswith(PACKED) else file


def read_file(path: str) -> bytes:
    """Reads a whole file.

    Raises:
        InputError: If there is none, or it cannot be read.
    """
    try:
        with FileSystems.open(path, compression_type=PLAIN) as file:
            return file.read()
    except OSError as error:
        reason = reason_of(error)
        if isinstance(error, FileNotFoundError):
            reason = "there is no such file"
        raise InputError(f"{path} cannot be read: {reason}.") from None


@contextlib.contextmanager
def replacing_file(path: str) -> Iterator[BinaryIO]:
    """Yields a file to write to, which appears whole at `path` or not at all.

    What a killed process leaves is called `PATH.ID.partial`.
    """
    partial = f"{path}.{uuid.uuid4().hex[:12]}.partial"
    try:
        with FileSystems.create(partial, compression_type=PLAIN) as file:
            yield file
        if FileSystems.exists(path):  # some file systems do not replace
            FileSystems.delete([path])
        FileSystems.rename([partial], [path])
    except BaseException:
        with contextlib.suppress(OSError):
            FileSystems.delete([partial])
        raise


def match(pattern: str) -> list[FileMetadata]:
    """Files of a pattern, in which `**` stands for folders, sorted by path.

    Hidden files below the pattern's folder are no data.
    """
    if is_local(pattern):
        paths = filter(os.path.isfile, glob.iglob(pattern, recursive=True))
        return [metadata(path) for path in sorted(paths)]
    try:
        [found] = FileSystems.match([pattern])
    except BeamIOError as error:
        causes = [*(error.exception_details or {}).values(), error]
        raise InputError(f"{pattern} cannot be listed: {causes[0]}.") from None
    folder = re.match(r"[^[*?]*", pattern)[0].rpartition("/")[0]
    shown = [
        file
        for file in found.metadata_list
        if "/." not in file.path.removeprefix(folder)
    ]
    return sorted(shown, key=lambda file: file.path)


def find_files(name: str) -> tuple[list[FileMetadata], bool]:
    """Files of an input, and whether they are all those of a folder.

    Args:
        name: str, a file, a folder, or a pattern.

    Raises:
        InputError: If there is no such file.
    """
    folder = name
    if is_local(name):
        if os.path.isfile(name):
            return [metadata(name)], False
        folder = glob.escape(name)
    if files := match(name):
        return files, False
    if glob.has_magic(name) or not (files := match(f"{folder.rstrip('/')}/**")):
        raise InputError(f"No file is called {name}.")
    return files, True


def is_local(path: str) -> bool:
    return "://" not in path


def metadata(path: str) -> FileMetadata:
    """What Beam says of a file, of a local one."""
    status = os.stat(path)
    return FileMetadata(path, status.st_size, status.st_mtime)
