import contextlib
import json
import os
import pathlib
import shutil
import uuid
from fnmatch import fnmatch

from keras_caption.errors import InputError


@contextlib.contextmanager
def replacing(path, folder_of=()):
    """Writes a file or folder that appears whole or not at all.

    Yields a path beside `path`, with its suffix, for the block to write to. At the
    end of the block it takes the place of `path`; if the block fails it is removed,
    and what was at `path` stays. Its name is unique, so that two writers never share
    a partial file. A killed process leaves its partial file, `.NAME.ID.partial`,
    behind: it may be deleted by hand, and never is by another writer.

    A file replaces only a file, and a folder only an empty folder or one that consists
    of `folder_of`.

    Args:
        path: Path of the file or folder. Missing parents are created; links are
            followed.
        folder_of: For a folder: patterns (as of `fnmatch`) that match the relative
            paths of all files that the writer may put there, beginning with a file
            that is always there. Omitted for a file.

    Raises:
        InputError: If something else is at `path`.
    """
    target = pathlib.Path(os.path.realpath(path))
    _check_replaceable(target, folder_of)
    partial = _beside(target, "partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        _check_replaceable(target, folder_of)  # others may have written there since
        if target.is_dir():
            old = _beside(target, "old")
            target.rename(old)
            partial.rename(target)
            _remove(old)
        else:
            os.replace(partial, target)
    except OSError as error:  # a full disk's error names no file
        if error.errno and error.filename in (None, partial, str(partial)):
            error.filename = str(path)
        raise
    finally:
        _remove(partial)


def write_json(path, content):
    """Writes a JSON file that appears whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(content, indent=1), encoding="utf-8")


@contextlib.contextmanager
def exclusive(folder):
    """Keeps other processes from writing to a folder during a block.

    All that write there have to ask for it. The lock is the file `.lock` in the
    folder; the operating system releases it when the process ends, however it ends.

    Args:
        folder: Path of the folder. If missing it is created, and removed again if the
            block leaves nothing in it.

    Raises:
        InputError: If another process is writing to the folder.
    """
    import filelock

    folder = pathlib.Path(folder)
    created = not folder.exists()
    if not (created or folder.is_dir()):
        raise InputError(f"{folder} is not a folder, so nothing is written into it.")
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / ".lock", blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise InputError(
            f"Another process is writing to {folder}: let it end first, or name "
            "another folder."
        ) from None
    try:
        yield
    finally:
        if created and [entry.name for entry in folder.glob("*")] == [".lock"]:
            _remove(folder)
        lock.release()


def _check_replaceable(path, folder_of):
    """Raises `InputError` if what is at a path was not written by this writer."""
    if not path.exists():
        return
    if not folder_of:
        if not path.is_file():
            raise InputError(f"{path} is not a file, so no file can replace it.")
        return
    if not path.is_dir():
        raise InputError(f"{path} is not a folder, so no folder can replace it.")
    files = [
        str(entry.relative_to(path))
        for entry in path.rglob("*")
        if entry.is_symlink() or not entry.is_dir()
    ]
    others = [name for name in files if not any(fnmatch(name, p) for p in folder_of)]
    if others or (files and folder_of[0] not in files):
        example = min(others or files, key=lambda name: (name.startswith("."), name))
        raise InputError(
            f"{path} is not replaced, because it holds other files, such as {example}: "
            "name another folder."
        )


def _beside(path, kind):
    return path.with_name(f".{path.stem}.{uuid.uuid4().hex[:12]}.{kind}{path.suffix}")


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
