"""From photos to the features that captioners read: grids and regions."""

from keras_caption.features.extractor import Extractor
from keras_caption.features.photos import (
    MAX_PIXELS,
    find_photos,
    read_photo,
    resize_photo,
)
from keras_caption.features.roi_align import roi_align
from keras_caption.features.windows import windows

__all__ = [
    "MAX_PIXELS",
    "Extractor",
    "find_photos",
    "read_photo",
    "resize_photo",
    "roi_align",
    "windows",
]
