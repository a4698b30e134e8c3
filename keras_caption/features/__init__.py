"""Extracts features of photos and clips for captioners.

Extractors are imported at their first use: files are found and read without Keras.
"""

from typing import TYPE_CHECKING

from keras_caption.base.registration import importing
from keras_caption.features.clips import Clip, find_clips, read_clip
from keras_caption.features.film_strip import film_strip
from keras_caption.features.photos import (
    MAX_PIXELS,
    find_photos,
    read_photo,
    resize_photo,
)
from keras_caption.features.roi_align import roi_align
from keras_caption.features.sampled_frames import sampled_frames
from keras_caption.features.windows import windows

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.apps.objects import CATEGORIES as CATEGORIES
    from keras_caption.apps.objects import COLOURS as COLOURS
    from keras_caption.apps.objects import ColouredObjects as ColouredObjects
    from keras_caption.apps.objects import EngineDetector as EngineDetector
    from keras_caption.apps.objects import HubDetector as HubDetector
    from keras_caption.apps.objects import LiteClassifier as LiteClassifier
    from keras_caption.apps.objects import LiteDetector as LiteDetector
    from keras_caption.apps.objects import NanoDet as NanoDet
    from keras_caption.apps.objects import ObjectDetector as ObjectDetector
    from keras_caption.apps.objects import PhotoClassifier as PhotoClassifier
    from keras_caption.apps.objects import SecondOpinion as SecondOpinion
    from keras_caption.apps.objects import Yolox as Yolox
    from keras_caption.apps.objects import colours_of as colours_of
    from keras_caption.apps.objects import load_detector as load_detector
    from keras_caption.features.clip_extractor import ClipExtractor
    from keras_caption.features.extractor import Extractor
    from keras_caption.features.hub_network import HubNetwork

MODULES = {
    "ClipExtractor": ".clip_extractor",
    "Extractor": ".extractor",
    "HubNetwork": ".hub_network",
}

__all__ = [
    "MAX_PIXELS",
    "Clip",
    "ClipExtractor",
    "Extractor",
    "HubNetwork",
    "film_strip",
    "find_clips",
    "find_photos",
    "read_clip",
    "read_photo",
    "resize_photo",
    "roi_align",
    "sampled_frames",
    "windows",
]
if not TYPE_CHECKING:  # other names are errors
    __getattr__ = importing(__name__, MODULES)
