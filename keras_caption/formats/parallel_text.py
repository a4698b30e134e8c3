"""Parallel text: two files, line n of one translates line n of the other.

A folder holds `train.*`, `val.*` (or `valid.*`, `dev.*`) and `test.*`, each with the
two languages as suffixes, such as `train.en` and `train.de`, plain or as `.gz`.
"""

import dataclasses
import itertools
import pathlib

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import existing_folder
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


def find_parallel(folder, source, target, test_set=None):
    """Finds the files of parallel text in a folder.

    Args:
        folder: Path.
        source, target: Languages, the suffixes of the files.
        test_set: str, name of the files for test without suffixes, such as
            `"test_2017_flickr"` or `"newstest2014"`, where there are several. Defaults
            to the only ones whose names begin with `test`.

    Returns:
        dict from `"train"`, `"val"` and `"test"` to `ParallelFiles`.

    Raises:
        InputError: If the folder, or a file in it, is missing, or several files may
            be meant.
    """
    folder = existing_folder(folder)
    if source == target:
        raise InputError(f"Source and target language are both {source!r}.")
    names = {"test": test_set}
    return {
        split: ParallelFiles(
            *(find_file(folder, split, x, names.get(split)) for x in (source, target))
        )
        for split in SPLITS
    }


def find_file(folder, split, language, name=None):
    """Finds the file of a split in a language, or that of a name."""
    files = list_files(folder)
    paths = [
        path
        for path in files
        if path.name.removesuffix(".gz").endswith(f".{language}")
        and (
            stem_of(path, language) == name
            if name
            else path.name.startswith(SPLITS[split])
        )
    ]
    if not paths:
        raise InputError(
            f"{folder} has no {name or split}.{language}, plain or as .gz; it has "
            f"{', '.join(path.name for path in files[:12]) or 'no files'}."
        )
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        choice = ""
        if split == "test":
            stem = stem_of(paths[0], language)
            choice = f" Choose one by its name: --config.data.test_set={stem}."
        raise InputError(
            f"{folder} has several files of {split} in {language}: {names}.{choice}"
        )
    return paths[0]


def stem_of(path, language):
    """The name of a file without the suffixes of its language and of gzip."""
    return path.name.removesuffix(".gz").removesuffix(f".{language}")
