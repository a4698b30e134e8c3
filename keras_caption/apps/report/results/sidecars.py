"""Captions in text files beside their photos."""

import collections
import os
import pathlib
from collections.abc import Iterable

import numpy as np

from keras_caption.apps.report.results.caption_files import Row
from keras_caption.apps.report.results.writing_beside import writing_beside
from keras_caption.base.atomic import creating
from keras_caption.formats.folders import CLIPS, PHOTOS, in_any_case, list_files

SUFFIX = ".txt"


class Sidecars:
    """Text files beside photos: the caption of `dog.jpg` is in `dog.txt`.

    The caption is in `dog.jpg.txt` if the folder has other photos or clips that are
    called `dog`, in any case of the letters. No file is replaced: a photo that has one,
    its suffix in any case, is done. A photo without a caption gets none.
    `keras-caption prepare --captions FOLDER` reads them.

    Attributes:
        path: str, what they are called in messages.

    Args:
        photos: Iterable of str, the photos.
    """

    path = "text files beside the photos"
    side = None

    def __init__(self, photos: Iterable[str]):
        folders = collections.defaultdict(set)
        for photo in map(os.path.abspath, photos):
            folders[os.path.dirname(photo)].add(os.path.basename(photo))
        self.counts = {
            folder: _count_names(folder, names) for folder, names in folders.items()
        }

    def __contains__(self, photo: str) -> bool:
        return bool(in_any_case(self.path_of(photo)))

    def write(self, row: Row, pixels: np.ndarray | None) -> None:
        """Writes the caption of a row, see `CaptionFile.write`.

        Raises:
            InputError: If the file cannot be written, though others could be.
        """
        if row["photo"] in self or not row["caption"]:
            return
        with (
            writing_beside(row["photo"]),
            creating(self.path_of(row["photo"])) as partial,
        ):
            partial.write_text(row["caption"] + "\n", encoding="utf-8")

    def path_of(self, photo: str) -> pathlib.Path:
        """The path of the text file of a photo."""
        path = pathlib.Path(photo)
        counts = self.counts[os.path.dirname(os.path.abspath(photo))]
        if counts[path.stem.casefold()] > 1:
            return path.with_name(path.name + SUFFIX)
        return path.with_suffix(SUFFIX)


def _count_names(folder, names):
    """Counts the photos and clips of a folder by their names without suffixes."""
    files = list_files(pathlib.Path(folder), (*PHOTOS, *CLIPS))
    names = {*names, *(file.name for file in files)}
    return collections.Counter(pathlib.PurePath(x).stem.casefold() for x in names)
