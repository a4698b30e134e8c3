"""Which files of a folder are data."""

import collections
import functools
import itertools
import os
import pathlib
import unicodedata

from keras_caption.formats.suffixes import suffix_of

# Suffixes of files that hold photos and clips, in lower case.
PHOTOS = (
    *(".avif", ".bmp", ".dib", ".gif", ".heic", ".heif", ".hif", ".jfif", ".jif"),
    *(".jpe", ".jpeg", ".jpg", ".pjp", ".pjpeg", ".png", ".tif", ".tiff", ".webp"),
)
CLIPS = (
    *(".avi", ".flv", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv"),
    *(".ts", ".webm", ".wmv"),
)
# Kinds of entries that are passed over, besides files with other suffixes.
HIDDEN, LINKS = "hidden", "links to folders"
SPECIAL, UNREADABLE = "links, pipes and devices", "folders that cannot be read"
SHOWN = 8  # kinds in a message


def list_files(
    folder: pathlib.Path,
    suffixes: tuple[str, ...] = ("",),
    below: bool = False,
    passed_over: collections.Counter | None = None,
) -> list[pathlib.Path]:
    """Lists the regular, visible files of some suffixes in a folder, sorted.

    Hidden files and folders, see `is_hidden`, hold no data. Folders and pipes are not
    files, whatever their names: reading a pipe would wait. Links to files are followed;
    links to folders are not, as they may lead anywhere or in a circle.

    Args:
        folder: `pathlib.Path`.
        suffixes: tuple of str, in lower case; those of files may be in any case.
            Defaults to all files.
        below: bool, whether to list the files of all folders below it too. Defaults to
            `False`.
        passed_over: `collections.Counter`, which counts all other entries by kind: a
            suffix, or one of the constants above. Defaults to `None`.

    Returns:
        List of `pathlib.Path`; empty if there is no such folder.
    """
    counts = collections.Counter() if passed_over is None else passed_over
    listed, waiting = [], [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            counts[UNREADABLE] += 1
            continue
        for entry in entries:
            path = pathlib.Path(entry.path)
            if is_hidden(entry.name):
                if not entry.name.endswith(".lock"):  # of who writes in the folder
                    counts[HIDDEN] += 1
            elif entry.is_symlink() and not path.exists():  # to nothing, or to itself
                counts[SPECIAL] += 1
            elif entry.is_dir():
                if not below:
                    continue
                if entry.is_symlink():
                    counts[LINKS] += 1
                else:
                    waiting.append(path)
            elif not entry.is_file():
                counts[SPECIAL] += 1
            elif entry.name.lower().endswith(suffixes):
                listed.append(path)
            else:
                counts[kind_of_suffix(entry.name)] += 1
    return sorted(listed)


def is_hidden(path: str) -> bool:
    """Returns whether a part of a path begins with a dot, except `.` and `..`.

    macOS writes `._dog.jpg` and `.DS_Store` beside `dog.jpg`, in folders and archives.
    """
    return any(
        part.startswith(".") and part not in (".", "..") for part in path.split("/")
    )


def in_any_case(path: str | os.PathLike) -> list[str]:
    """Lists the paths that exist and differ in the case of the suffix at most."""
    stem, suffix = os.path.splitext(path)
    cases = itertools.product(*({x.lower(), x.upper()} for x in suffix))
    paths = sorted(stem + "".join(case) for case in cases)
    return [path for path in paths if os.path.lexists(path)]


def kind_of_suffix(name: str) -> str:
    """Returns the kind under which a file that is passed over is counted."""
    return suffix_of(name) or "without suffix"


def describe_passed_over(counts: collections.Counter) -> str:
    """Describes what was passed over, such as `".txt: 3, hidden: 1"`."""
    kinds = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    described = [f"{kind}: {count:,}" for kind, count in kinds[:SHOWN]]
    if others := sum(count for _, count in kinds[SHOWN:]):
        described.append(f"others: {others:,}")
    return ", ".join(described)


def existing_path(path: str | os.PathLike) -> str:
    """Finds a file whose name may be in another normal form of Unicode.

    Names with accents that were unpacked on a Mac are in NFD, most lists in NFC.

    Args:
        path: Path of a file or folder.

    Returns:
        str, the path or, if it does not exist, a path that differs in normal form only.
    """
    path = os.fspath(path)
    folder, name = os.path.split(path)
    if path.isascii() or not name or os.path.lexists(path):
        return path
    folder = existing_path(folder)
    try:
        names = _names_in(folder or ".", os.stat(folder or ".").st_mtime_ns)
    except OSError:
        return path
    return os.path.join(folder, names.get(unicodedata.normalize("NFC", name), name))


@functools.lru_cache(8)
def _names_in(folder, modified):
    """Maps NFC to the names in a folder; `modified` invalidates the cache."""
    return {unicodedata.normalize("NFC", name): name for name in os.listdir(folder)}
