import contextlib
import errno
import hashlib
import json
import os
import pathlib
import shutil
import stat
import uuid
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.base.validation import SURROGATE

# What file systems say that know no locks, as over a network. There the lock is held
# while its file names a process of this machine that runs.
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)

# Longest stem and suffix, in bytes, that a temporary name takes from a file's name:
# file systems allow 255 bytes in all, those that encrypt names as few as 143.
LONGEST_NAME, LONGEST_SUFFIX = 90, 16


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike, folder_of: Sequence[str] = ()
) -> Iterator[pathlib.Path]:
    """Writes a file or folder that appears whole or not at all.

    Yields a temporary path beside `path`, with the same suffix, for the block to write
    to. At the end of the block, the temporary path replaces `path`; if the block
    fails, it is removed and `path` stays as it was. Its name is unique, so that two
    writers never share a temporary file. A killed process leaves its file,
    `.NAME.ID.partial`, behind; no other writer deletes it, users may.

    A file replaces only a file, and a folder only an empty folder or one whose files
    all match `folder_of`.

    Args:
        path: Path of the file or folder. Missing parents are created, and removed again
            if the block fails; links are followed.
        folder_of: For a folder, sequence of `fnmatch` patterns that match the relative
            paths of all files that the writer may write, the first being that of a
            file that is always written. Defaults to none, for a file.

    Raises:
        InputError: If `path` is something that must not be replaced.
    """
    target = pathlib.Path(os.path.realpath(path))
    _check_replaceable(target, folder_of)
    partial = _beside(target, "partial")
    with naming(path, partial), _in_folder(target):
        try:
            yield partial
            _check_replaceable(
                target, folder_of
            )  # another process may have written in the meantime
            if target.is_dir():
                old = _beside(target, "old")
                target.rename(old)
                partial.rename(target)
                _remove(old)
            else:
                os.replace(partial, target)
        finally:
            _remove(partial)


@contextlib.contextmanager
def creating(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Writes a new file that appears whole or not at all, and replaces none.

    As `replacing`, for files that users name: what is there is not known to be ours.

    Args:
        path: Path of the file.

    Raises:
        InputError: As `check_new`, or if another process is writing the file.
    """
    with exclusive_file(path):
        check_new(path)
        with replacing(path) as partial:
            yield partial
            check_new(path)


def check_new(path: str | os.PathLike) -> None:
    """Checks that a new file can be written to a path.

    Raises:
        InputError: If there is something already, or no file can be there.
    """
    if os.path.lexists(path):
        raise InputError(f"{path} exists already and is not replaced: name a new file.")
    check_folder(path)


def check_folder(path: str | os.PathLike) -> None:
    """Checks that files can be written to the folder of a path, if it exists.

    Raises:
        InputError: If it is no folder, or may not be written to.
    """
    folder = pathlib.Path(os.path.realpath(path)).parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: {folder} is not a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written: {folder} is write-protected.")


@contextlib.contextmanager
def naming(
    path: str | os.PathLike, partial: str | os.PathLike | None = None
) -> Iterator[None]:
    """Makes errors of the operating system name a file: that of a full disk does not.

    Args:
        path: Path of the file that a block writes to, or what it is called.
        partial: Path to rename to `path` in errors, or `None`.
    """
    try:
        yield
    except OSError as error:
        if error.errno and error.filename in (None, partial, str(partial)):
            error.filename = str(path)
            error.strerror = os.strerror(error.errno)  # HDF5's own has several lines
        elif not error.errno and str(path) not in str(error):  # such as HDF5's
            raise OSError(f"{path} cannot be written: {error}") from error
        raise


@contextlib.contextmanager
def naming_tensorflows(path: str | os.PathLike) -> Iterator[None]:
    """Makes errors of TensorFlow's files those of the operating system, see `naming`.

    Args:
        path: Path of the file or folder that a block writes to by TensorFlow.
    """
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        full = isinstance(error, tf.errors.ResourceExhaustedError)
        code = errno.ENOSPC if full else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error


def keep_attributes(path: str | os.PathLike, partial: str | os.PathLike) -> None:
    """Gives a file that will replace another one the attributes of that one.

    These are owner, group, mode, time of the last change and, where Python reads them,
    which is on Linux, extended attributes, among them access control lists.

    Args:
        path: Path of the file to be replaced.
        partial: Path of the new file.

    Raises:
        InputError: If one of them cannot be kept; the message is the reason.
    """
    with contextlib.suppress(OSError):  # what is not kept is seen by comparing
        old, new = os.stat(path), os.stat(partial)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.chown(partial, old.st_uid, old.st_gid)
        shutil.copystat(path, partial)
    before, after = _attributes(path), _attributes(partial)
    lost = [name for name, value in before.items() if after[name] != value]
    if lost:
        raise InputError(f"its {' and '.join(lost)} cannot be kept")


def _attributes(path):
    state, extended = os.stat(path), {}
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # of a file system without them
            extended = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return {
        "owner": state.st_uid,
        "group": state.st_gid,
        "mode": stat.S_IMODE(state.st_mode),
        "time": state.st_mtime_ns,
        "extended attributes": extended,
    }


def write_json(path: str | os.PathLike, content: Any) -> None:
    r"""Writes a JSON file that appears whole or not at all.

    A lone surrogate, which a file name has that is not valid UTF-8, is replaced by the
    six characters of its escape, such as `\udcf1`: pydantic refuses JSON that has one.
    """
    text = json.dumps(content, indent=1)
    if r"\ud" in text:  # the escape of a surrogate, lone or of a pair
        plain = json.dumps(content, ensure_ascii=False)
        plain = SURROGATE.sub(lambda x: rf"\\u{ord(x[0]):x}", plain)
        text = json.dumps(json.loads(plain), indent=1)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def exclusive(folder: str | os.PathLike) -> Iterator[None]:
    """Keeps other processes from writing to a folder during a block.

    Only writers that use this lock are kept out. The lock is the file `.lock` in the
    folder; the operating system releases it when the process ends, however it ends.

    Args:
        folder: Path of the folder. A missing folder is created, and removed again, with
            its parents, if the block leaves it empty.

    Raises:
        InputError: If another process is writing to the folder.
    """
    folder = pathlib.Path(folder)
    created = not folder.exists()
    if not (created or folder.is_dir()):
        raise InputError(f"{folder} is not a folder, so nothing is written into it.")
    lock = folder / ".lock"
    with _in_folder(lock), _locked(lock, folder, "folder"):
        try:
            yield
        finally:
            if created and [*folder.glob("*")] == [lock]:
                _remove(lock)  # before it is released, as below


@contextlib.contextmanager
def exclusive_file(path: str | os.PathLike) -> Iterator[None]:
    """Keeps other processes from writing to a file during a block.

    Only writers that use this lock are kept out. The lock is the file `.NAME.lock`
    beside the file, or one with the digest of a long name. It is removed at the end of
    the block, as are folders that were created for it and are left empty.

    Args:
        path: Path of the file, which need not exist; links are followed.

    Raises:
        InputError: If another process is writing to the file, or no file can be there.
    """
    check_folder(path)
    target = pathlib.Path(os.path.realpath(path))
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]
    is_long = len(os.fsencode(target.name)) > LONGEST_NAME
    lock = _hidden(target, f"{digest}.lock" if is_long else "lock")
    with _in_folder(target), _locked(lock, path, "file"):
        try:
            yield
        finally:
            _remove(lock)  # before it is released: filelock refuses removed locks


@contextlib.contextmanager
def _in_folder(target):
    """Creates the missing parents of a path, and removes those left empty."""
    created = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the block has written a file
            for folder in created:
                folder.rmdir()


@contextlib.contextmanager
def _locked(lock, target, noun):
    """Holds a lock file; `target` is the file or folder that it is for."""
    import filelock

    held = filelock.FileLock(lock, blocking=False)
    try:
        try:
            held.acquire()
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
            if not lock.stat().st_size:  # of this attempt; that of a holder names it
                lock.unlink()
            held = filelock.SoftFileLock(lock, blocking=False)
            held.acquire()
    except filelock.Timeout:
        raise InputError(
            f"Another process is writing to {target}: wait until it ends, or name "
            f"another {noun}."
        ) from None
    try:
        yield
    finally:
        held.release()


def _check_replaceable(path, folder_of):
    """Raises `InputError` unless a path is free or has only files of this writer."""
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
    foreign = [name for name in files if not any(fnmatch(name, p) for p in folder_of)]
    if foreign or (files and folder_of[0] not in files):
        example = min(foreign or files, key=lambda name: (name.startswith("."), name))
        raise InputError(
            f"{path} is not replaced, because it holds other files, such as {example}: "
            "name another folder."
        )


def _beside(path, kind):
    """A new name with the suffix of a path, as libraries tell formats by it."""
    suffix = path.suffix if len(os.fsencode(path.suffix)) <= LONGEST_SUFFIX else ""
    return _hidden(path, f"{uuid.uuid4().hex[:12]}.{kind}{suffix}")


def _hidden(path, ending):
    """A hidden path beside another, with as much of its name as is surely allowed."""
    name = path.stem if path.suffix and ending.endswith(path.suffix) else path.name
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = os.fsencode(name)[:LONGEST_NAME].decode("utf-8", "ignore")
    return path.with_name(f".{name}.{ending}")


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
