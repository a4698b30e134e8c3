"""Captions in the metadata of their photos."""

import collections
import os
import pathlib
import stat

import numpy as np

from keras_caption.apps.report.results.caption_files import Row
from keras_caption.apps.report.results.writing_beside import writing_beside
from keras_caption.base.atomic import keep_attributes, replacing
from keras_caption.base.errors import InputError, need_packages
from keras_caption.base.progress import report
from keras_caption.formats.photo_metadata import (
    describe_photo,
    describe_xmp,
    is_described,
    sidecar_of,
)


class PhotoMetadata:
    """Descriptions of photos: in the files, or in XMP beside them.

    No description is replaced: a photo that has one is done. A photo without a caption
    gets none. A photo is replaced by one that has all that it had, see
    `describe_photo`, and its owner, group, mode, time and extended attributes. Where
    this cannot be, as of damaged files, formats without descriptions and files with
    other hard links, the description is written to `dog.jpg.xmp`.

    Args:
        in_sidecars: bool, whether all descriptions stand beside the photos.

    Attributes:
        path: str, their name in messages.
        beside: dict of lists of photos whose descriptions stand beside them, although
            they were wanted in the files, by the reason.

    Raises:
        InputError: If the package of the extra `metadata` is missing.
    """

    path = "metadata of the photos"
    side = None

    def __init__(self, in_sidecars: bool = False):
        need_packages("pyexiv2")
        self.in_sidecars = in_sidecars
        self.beside: dict[str, list[str]] = collections.defaultdict(list)

    def __contains__(self, photo: str) -> bool:
        return is_described(photo)

    def write(self, row: Row, pixels: np.ndarray | None) -> None:
        """Writes the caption of a row, see `CaptionFile.write`.

        Raises:
            InputError: If the caption can be written neither into the photo nor beside
                it, such as to a file that is no XMP.
        """
        photo, text = row["photo"], row["caption"]
        if photo in self or not text:
            return
        reason = None
        if not self.in_sidecars:
            try:
                with writing_beside(photo):
                    self._write_into(pathlib.Path(photo), text)
                return
            except InputError as error:
                reason = str(error)
        with writing_beside(photo):
            self._write_sidecar(sidecar_of(photo), text)
        if reason:
            self.beside[reason].append(photo)

    def report(self) -> None:
        """Prints how many captions stand beside their photos, and why."""
        for reason, photos in self.beside.items():
            report(
                f"beside the photo, not in it: {len(photos):,} (such as "
                f"{sidecar_of(photos[0])}), because {reason}"
            )

    def _write_into(self, path, text):
        before = os.stat(path)
        if before.st_nlink > 1:
            raise InputError("the file has other hard links")
        content = path.read_bytes()
        self._replace(path, before, describe_photo(content, text), keeps_time=True)

    def _write_sidecar(self, path, text):
        if not os.path.lexists(path):
            with replacing(path) as partial:
                partial.write_bytes(describe_xmp(b"", text))
            return
        if not path.is_file():
            raise InputError(f"{path} is not a file")
        before = os.stat(path)
        if before.st_nlink > 1:
            raise InputError(f"{path} has other hard links")
        try:
            content = describe_xmp(path.read_bytes(), text)
            self._replace(path, before, content, keeps_time=False)
        except InputError as error:
            raise InputError(f"{path} stays as it is: {error}") from None

    @staticmethod
    def _replace(path, before, content, keeps_time):
        """Replaces a file that has not changed since `before`, its `os.stat`."""
        if not before.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise InputError("the file is write-protected")
        with replacing(path) as partial:
            number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(number, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            keep_attributes(path, partial)
            if not keeps_time:  # programs read a sidecar again by its time
                os.utime(partial)
            now = os.stat(path)
            if (now.st_mtime_ns, now.st_size) != (before.st_mtime_ns, before.st_size):
                raise InputError("the file was changed in the meantime")
