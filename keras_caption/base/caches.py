"""Folders of files that are kept for later processes, and only save time."""

import atexit
import contextlib
import functools
import hashlib
import os
import pathlib
import re
import shutil
import tempfile
import uuid

from keras_caption.base.progress import report

FOLDER = "KERAS_CAPTION_CACHE"  # a variable of the environment
ENTRY = re.compile(r"(.+)\.([0-9a-f]{32})")  # the name of one: key and digest


def cache_folder() -> pathlib.Path | None:
    """The folder of what is kept for later processes, or `None` to keep nothing.

    It is that of the environment variable KERAS_CAPTION_CACHE, empty for none, or
    `keras_caption` in the user's cache.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = os.environ.get(FOLDER, str(pathlib.Path(cache) / "keras_caption"))
    return pathlib.Path(folder).absolute() if folder else None


@functools.cache
def own_folder() -> pathlib.Path:
    """A folder of this process, for what is not kept."""
    temporary = tempfile.TemporaryDirectory()
    atexit.register(temporary.cleanup)
    return pathlib.Path(temporary.name)


class Cache:
    """A folder of entries, each a file or a folder, by key.

    A cache only saves time. An entry is found as it was kept, or not at all: its name
    is `KEY.DIGEST`, with a digest of key and content, and one that is damaged, renamed
    or unreadable is deleted, so that it is made anew. What cannot be written, on a full
    or write-protected disk, is passed over, which is said in one line.

    Args:
        folder: `pathlib.Path`, which need not exist, or `None` to keep nothing.
        noun: str, what is kept, in the plural.
    """

    def __init__(self, folder: pathlib.Path | None, noun: str):
        self.folder = folder
        self.noun = noun
        self.has_failed = False

    def find(self, key: str | None = None) -> dict[str, pathlib.Path]:
        """Finds the entry of a key, or all entries.

        Returns:
            dict from key to path, without entries that are not whole.
        """
        found = {}
        with contextlib.suppress(OSError):  # such as that there is no folder
            for path in sorted(self.folder.iterdir()) if self.folder else ():
                match = ENTRY.fullmatch(path.name)
                if match is None or key not in (None, match[1]):
                    continue
                if is_whole(path, *match.groups()):
                    found[match[1]] = path
                else:
                    delete(path)
        return found

    def keep(self, key: str, made: pathlib.Path) -> pathlib.Path | None:
        """Keeps a copy of a file or folder.

        Returns:
            `pathlib.Path` of the entry, or `None` if nothing is kept.
        """
        if self.folder is None or self.has_failed:
            return None
        entry = partial = self.folder / f".{uuid.uuid4().hex[:12]}.partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (shutil.copytree if made.is_dir() else shutil.copyfile)(made, partial)
            entry = self.folder / f"{key}.{digest_of(key, partial)}"
            if not entry.exists():
                partial.rename(entry)
        except OSError as error:
            if entry != partial and entry.exists():  # another process was quicker
                return entry
            self.has_failed = True
            reason = error.strerror or "copying failed"
            report(f"{self.folder} cannot keep {self.noun} ({reason}).")
            return None
        finally:
            delete(partial)
        return entry


def digest_of(key: str, path: pathlib.Path) -> str:
    """The digest of an entry: of its key, its names and its content."""
    digest = hashlib.sha256(key.encode())
    is_folder = path.is_dir()
    for file in sorted(path.rglob("*")) if is_folder else [path]:
        if is_folder:
            digest.update(b"\0" + str(file.relative_to(path)).encode() + b"\0")
        if not file.is_dir():
            with open(file, "rb") as opened:
                content = hashlib.file_digest(opened, "sha256")
            digest.update(content.digest())
    return digest.hexdigest()[:32]


def is_whole(path: pathlib.Path, key: str, digest: str) -> bool:
    """Whether an entry has the content that it was kept with.

    Its time of the last access, by which the oldest are deleted, stays as it is.
    """
    try:
        before = path.stat()
        found = digest_of(key, path)
    except OSError:
        return False
    with contextlib.suppress(OSError):  # where it may only be read
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return found == digest


def delete(path: pathlib.Path) -> None:
    """Deletes a file or folder, if it exists and may be deleted."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
