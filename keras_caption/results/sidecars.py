"""Captions in text files beside their photos."""

import collections
import os
import pathlib
from collections.abc import Iterable

import numpy as np

from keras_caption.atomic import creating
from keras_caption.errors import InputError
from keras_caption.results.caption_files import Row


class Sidecars:
    """Text files beside photos: the caption of `dog.jpg` is in `dog.txt`.

    No file is replaced: a photo that has one is done. A photo without a caption gets
    none. `keras-caption prepare --captions FOLDER` reads them.

    Attributes:
        path: str, what they are called in messages.

    Args:
        photos: Iterable of str, the photos.

    Raises:
        InputError: If two photos would share a file.
    """

    path = "text files beside the photos"
    side = None

    def __init__(self, photos: Iterable[str]):
        owners = collections.defaultdict(list)
        for photo in photos:
            owners[os.path.realpath(path_of(photo))].append(photo)
        for of_file in owners.values():
            if len(of_file) > 1:
                raise InputError(
                    f"{of_file[0]} and {of_file[1]} would share one text file, "
                    f"{path_of(of_file[0]).name}: caption them apart."
                )

    def __contains__(self, photo: str) -> bool:
        return os.path.lexists(path_of(photo))

    def write(self, row: Row, pixels: np.ndarray | None) -> None:
        """Writes the caption of a row, see `CaptionFile.write`."""
        if row["photo"] in self or not row["caption"]:
            return
        with creating(path_of(row["photo"])) as partial:
            partial.write_text(row["caption"] + "\n", encoding="utf-8")


def path_of(photo: str) -> pathlib.Path:
    """The path of the text file of a photo."""
    return pathlib.Path(photo).with_suffix(".txt")
