import contextlib
import json
import os
import pathlib
import shutil

import filelock

from keras_caption.errors import InputError


@contextlib.contextmanager
def replacing(path):
    """Writes a file or folder that appears whole or not at all.

    Yields the path to write to, beside `path` and with its suffix. At the end of
    the block it takes the place of `path`; if the block fails it is removed and
    what was at `path` stays.

    Args:
        path: Where the file or folder shall be. Missing parents are made.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    remove(partial)
    try:
        yield partial
        if path.is_dir():
            old = path.with_name(f".{path.stem}.old{path.suffix}")
            remove(old)
            path.rename(old)
            partial.rename(path)
            remove(old)
        else:
            os.replace(partial, path)
    except OSError as error:  # a full disk's has no name of a file
        if error.errno and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        remove(partial)


def write_json(path, content):
    """Writes a JSON file that appears whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(content, indent=1), encoding="utf-8")


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def exclusive(folder):
    """Keeps other processes from writing a folder at the same time.

    Args:
        folder: Path of the folder, made if missing.

    Raises:
        InputError: If another living process is writing it.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / ".lock", blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise InputError(f"Another process is writing {folder}.") from None
    try:
        yield
    finally:
        lock.release()
