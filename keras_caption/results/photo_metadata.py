"""Captions in the metadata of their photos."""

import pathlib
import shutil

import numpy as np

from keras_caption.atomic import replacing
from keras_caption.errors import need_packages
from keras_caption.formats.photo_metadata import (
    EMPTY_SIDECAR,
    describe_photo,
    is_described,
    sidecar_of,
)
from keras_caption.results.caption_files import Row


class PhotoMetadata:
    """Descriptions of photos: in the files, or in XMP beside them.

    No description is replaced: a photo that has one is done. A photo without a caption
    gets none. The pixels of a photo stay as they are; `dog.jpg.xmp` has the description
    of a photo whose format holds none, or that is damaged.

    Args:
        in_sidecars: bool, whether all descriptions stand beside the photos.

    Attributes:
        path: str, their name in messages.

    Raises:
        InputError: If the package of the extra `metadata` is missing.
    """

    path = "metadata of the photos"
    side = None

    def __init__(self, in_sidecars: bool = False):
        need_packages("pyexiv2")
        self.in_sidecars = in_sidecars

    def __contains__(self, photo: str) -> bool:
        return is_described(photo)

    def write(self, row: Row, pixels: np.ndarray | None) -> None:
        """Writes the caption of a row, see `CaptionFile.write`."""
        if row["photo"] in self or not row["caption"]:
            return
        path, content = pathlib.Path(row["photo"]), None
        if not self.in_sidecars:
            content = describe_photo(path.read_bytes(), row["caption"])
        if content is None:
            path = sidecar_of(path)
            earlier = path.read_bytes() if path.exists() else EMPTY_SIDECAR
            content = describe_photo(earlier, row["caption"])
            if content is None:  # a file of somebody else, which is no XMP
                return
        with replacing(path) as partial:
            partial.write_bytes(content)
            if path.exists():
                shutil.copymode(path, partial)
