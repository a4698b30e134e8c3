"""Files on any of Beam's file systems."""

import collections
import contextlib
import glob
import gzip
import hashlib
import io
import os
import pathlib
import re
import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from keras_caption.base.atomic import naming
from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reason_of, refuse_pipe
from keras_caption.formats.folders import HIDDEN, existing_path, is_hidden, list_files

PLAIN = CompressionTypes.UNCOMPRESSED
PACKED = (".gz", ".tgz")


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading bytes. A `.gz` is unpacked."""
    file: BinaryIO = FileSystems.open(path, compression_type=PLAIN)
    if path.lower().endswith(PACKED):
        unpacked: Any = gzip.GzipFile(fileobj=file)  # a `BinaryIO` in all but its class
        return unpacked
    return file


def read_file(path: str, limit: int | None = None) -> bytes:
    """Reads a whole file.

    Args:
        path: str. The name of a local file may have another normal form of Unicode.
        limit: int, greatest number of bytes. Defaults to `None`, no limit.

    Raises:
        InputError: If there is no such file, it cannot be read, or it is larger.
    """
    if path.startswith(("http://", "https://")):
        raise InputError(f"{path} is an address: nothing is downloaded.")
    if is_local(path):
        path = existing_path(path)
        refuse_pipe(pathlib.Path(path))
    try:
        with FileSystems.open(path, compression_type=PLAIN) as file:
            content = file.read(-1 if limit is None else limit + 1)
    except (OSError, ValueError) as error:  # ValueError: an unknown file system
        reason = reason_of(error)
        if isinstance(error, FileNotFoundError):
            reason = "there is no such file"
        raise InputError(f"{path} cannot be read: {reason}.") from None
    if limit is not None and len(content) > limit:
        raise InputError(
            f"{path} has more than {limit:,} bytes, the most that are read."
        )
    return content


class HashedFile(io.RawIOBase):
    """A file to write to, which knows the SHA-256 of what was written.

    Args:
        file: Binary file.
    """

    def __init__(self, file: BinaryIO):
        self.file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, content: Any) -> int:
        self.file.write(content)
        self.digest.update(content)
        self.size += memoryview(content).nbytes
        return memoryview(content).nbytes


def digest_of(path: str) -> str:
    """Computes the SHA-256 of a file, in blocks; a `.gz` is unpacked."""
    with open_file(path) as file:
        digest = hashlib.sha256()
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def replacing_file(path: str, folder: str) -> Iterator[HashedFile]:
    """Yields a file to write to, which appears whole at `path` or not at all.

    Args:
        path: str.
        folder: str, a folder of the same file system for the unfinished file,
            `NAME.ID.partial`, which a killed process leaves.
    """
    name = path.rpartition("/")[2]
    partial = f"{folder}/{name}.{uuid.uuid4().hex[:12]}.partial"
    try:
        with naming(path, partial):
            with FileSystems.create(partial, compression_type=PLAIN) as file:
                yield HashedFile(file)
            if FileSystems.exists(path):  # some file systems do not replace files
                FileSystems.delete([path])
            FileSystems.rename([partial], [path])
    except BaseException:
        delete([partial])
        raise


def delete(paths: list[str]) -> None:
    """Deletes files, if they exist and may be deleted."""
    with contextlib.suppress(OSError):  # Beam's errors are of this class
        FileSystems.delete(paths)


def match(
    pattern: str, passed_over: collections.Counter | None = None
) -> list[FileMetadata]:
    """Lists the files of a pattern, in which `**` stands for folders, sorted by path.

    Args:
        pattern: str. Hidden files below its folder are passed over.
        passed_over: `collections.Counter` that counts hidden files of file systems
            that are not local. Defaults to `None`.
    """
    if is_local(pattern):
        paths = filter(os.path.isfile, glob.iglob(pattern, recursive=True))
        return [metadata(path) for path in sorted(paths)]
    try:
        [matched] = FileSystems.match([pattern])
    except BeamIOError as error:
        causes = [*(error.exception_details or {}).values(), error]
        raise InputError(f"{pattern} cannot be listed: {causes[0]}.") from None
    # The folder before the first wildcard may be hidden itself.
    folder = re.split(r"[*?[]", pattern, maxsplit=1)[0].rpartition("/")[0]
    shown = [
        file
        for file in matched.metadata_list
        if not is_hidden(file.path.removeprefix(folder))
    ]
    if passed_over is not None:
        passed_over[HIDDEN] += len(matched.metadata_list) - len(shown)
    return sorted(shown, key=lambda file: file.path)


def find_files(
    name: str, passed_over: collections.Counter
) -> tuple[list[FileMetadata], bool]:
    """Lists the files of an input, and says whether the input is a folder.

    Args:
        name: str, a file, a folder, or a pattern.
        passed_over: `collections.Counter` that counts other files of a folder, see
            `keras_caption.formats.folders.list_files`.

    Raises:
        InputError: If there is no such file.
    """
    if is_local(name):
        name = existing_path(name)
        if os.path.isfile(name):
            return [metadata(name)], False
        if os.path.isdir(name):
            folder = pathlib.Path(name)
            paths = list_files(folder, below=True, passed_over=passed_over)
            return [metadata(str(path)) for path in paths], True
    if files := match(name):
        return files, False
    below = f"{name.rstrip('/')}/**"
    is_pattern = is_local(name) or glob.has_magic(name)
    if not is_pattern and (files := match(below, passed_over)):
        return files, True
    raise InputError(f"No file is called {name}.")


def is_local(path: str) -> bool:
    return "://" not in path


def metadata(path: str) -> FileMetadata:
    """Beam's metadata of a local file. A file that has vanished has no bytes."""
    try:
        status = os.stat(path)
    except OSError:
        return FileMetadata(path, 0, 0.0)
    return FileMetadata(path, status.st_size, status.st_mtime)
