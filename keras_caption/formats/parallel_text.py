"""Parallel text: two files, line n of one translates line n of the other.

A folder holds `train.*`, `val.*` (or `valid.*`, `dev.*`) and `test.*`, each with the
two languages as suffixes, such as `train.en` and `train.de`, plain or as `.gz`.
"""

import dataclasses
import itertools
import pathlib

from keras_caption.errors import InputError
from keras_caption.formats.folders import list_files
from keras_caption.formats.text_lines import lines

SPLITS = {"train": ("train",), "val": ("val", "dev"), "test": ("test",)}


@dataclasses.dataclass(frozen=True)
class ParallelFiles:
    """The two files of a split.

    Attributes:
        source, target: Paths.
    """

    source: pathlib.Path
    target: pathlib.Path

    def __iter__(self):
        """Yields pairs of str, without the ends of lines.

        Raises:
            InputError: If a file cannot be read, or ends before the other.
        """
        pairs = itertools.zip_longest(lines(self.source), lines(self.target))
        for number, (source, target) in enumerate(pairs, start=1):
            if source is None or target is None:
                short, other = self.source, self.target
                if target is None:
                    short, other = other, short
                raise InputError(
                    f"{short} ends after {number - 1:,} lines, before {other}: the "
                    "files of parallel text have as many lines as each other."
                )
            yield source, target


def find_parallel(folder, source, target):
    """Finds the files of parallel text in a folder.

    Args:
        folder: Path.
        source, target: Languages, the suffixes of the files.

    Returns:
        dict from `"train"`, `"val"` and `"test"` to `ParallelFiles`.

    Raises:
        InputError: If the folder, or a file in it, is missing, or several files may
            be meant.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    if source == target:
        raise InputError(f"Source and target language are both {source!r}.")
    return {
        split: ParallelFiles(
            find_file(folder, split, source), find_file(folder, split, target)
        )
        for split in SPLITS
    }


def find_file(folder, split, language):
    """Finds the file of a split in a language."""
    files = list_files(folder)
    paths = [
        path
        for path in files
        if path.name.startswith(SPLITS[split])
        and path.name.removesuffix(".gz").endswith(f".{language}")
    ]
    if not paths:
        raise InputError(
            f"{folder} has no {split}.{language}, plain or as .gz; its files are "
            f"{', '.join(path.name for path in files[:12])}."
        )
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise InputError(
            f"{folder} has several files of {split} in {language}: {names}."
        )
    return paths[0]
