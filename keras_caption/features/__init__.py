"""Extracts features of photos and clips for captioners.

Extractors and detectors are imported at their first use: files are found and read
without Keras.
"""

from typing import TYPE_CHECKING

from keras_caption.features.categories import CATEGORIES
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
from keras_caption.registration import importing

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.features.clip_extractor import ClipExtractor
    from keras_caption.features.coloured_objects import (
        COLOURS,
        ColouredObjects,
        colours_of,
    )
    from keras_caption.features.detectors import load_detector
    from keras_caption.features.engine_detector import EngineDetector
    from keras_caption.features.extractor import Extractor
    from keras_caption.features.hub_detector import HubDetector
    from keras_caption.features.hub_network import HubNetwork
    from keras_caption.features.lite_classifier import LiteClassifier
    from keras_caption.features.lite_detector import LiteDetector
    from keras_caption.features.nanodet import NanoDet
    from keras_caption.features.object_detector import ObjectDetector
    from keras_caption.features.photo_classifier import PhotoClassifier
    from keras_caption.features.second_opinion import SecondOpinion
    from keras_caption.features.yolox import Yolox

MODULES = {
    "COLOURS": ".coloured_objects",
    "ClipExtractor": ".clip_extractor",
    "ColouredObjects": ".coloured_objects",
    "EngineDetector": ".engine_detector",
    "Extractor": ".extractor",
    "HubDetector": ".hub_detector",
    "HubNetwork": ".hub_network",
    "LiteClassifier": ".lite_classifier",
    "LiteDetector": ".lite_detector",
    "NanoDet": ".nanodet",
    "ObjectDetector": ".object_detector",
    "PhotoClassifier": ".photo_classifier",
    "SecondOpinion": ".second_opinion",
    "Yolox": ".yolox",
    "colours_of": ".coloured_objects",
    "load_detector": ".detectors",
}

__all__ = [
    "CATEGORIES",
    "COLOURS",
    "MAX_PIXELS",
    "Clip",
    "ClipExtractor",
    "ColouredObjects",
    "EngineDetector",
    "Extractor",
    "HubDetector",
    "HubNetwork",
    "LiteClassifier",
    "LiteDetector",
    "NanoDet",
    "ObjectDetector",
    "PhotoClassifier",
    "SecondOpinion",
    "Yolox",
    "colours_of",
    "film_strip",
    "find_clips",
    "find_photos",
    "load_detector",
    "read_clip",
    "read_photo",
    "resize_photo",
    "roi_align",
    "sampled_frames",
    "windows",
]
__getattr__ = importing(__name__, MODULES)
