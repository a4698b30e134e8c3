"""What is known of COCO's objects: detectors, their words, colours and evidence.

Detectors are imported at their first use, and Keras with them.
"""

from typing import TYPE_CHECKING

from keras_caption.objects.categories import CATEGORIES
from keras_caption.registration import importing

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.objects.coloured_objects import (
        COLOURS,
        ColouredObjects,
        colours_of,
    )
    from keras_caption.objects.detectors import load_detector
    from keras_caption.objects.engine_detector import EngineDetector
    from keras_caption.objects.evidence import ObjectEvidence
    from keras_caption.objects.hub_detector import HubDetector
    from keras_caption.objects.lite_classifier import LiteClassifier
    from keras_caption.objects.lite_detector import LiteDetector
    from keras_caption.objects.nanodet import NanoDet
    from keras_caption.objects.object_detector import ObjectDetector
    from keras_caption.objects.photo_classifier import PhotoClassifier
    from keras_caption.objects.second_opinion import SecondOpinion
    from keras_caption.objects.yolox import Yolox

MODULES = {
    "COLOURS": ".coloured_objects",
    "ColouredObjects": ".coloured_objects",
    "EngineDetector": ".engine_detector",
    "HubDetector": ".hub_detector",
    "LiteClassifier": ".lite_classifier",
    "LiteDetector": ".lite_detector",
    "NanoDet": ".nanodet",
    "ObjectDetector": ".object_detector",
    "ObjectEvidence": ".evidence",
    "PhotoClassifier": ".photo_classifier",
    "SecondOpinion": ".second_opinion",
    "Yolox": ".yolox",
    "colours_of": ".coloured_objects",
    "load_detector": ".detectors",
}

__all__ = [
    "CATEGORIES",
    "COLOURS",
    "ColouredObjects",
    "EngineDetector",
    "HubDetector",
    "LiteClassifier",
    "LiteDetector",
    "NanoDet",
    "ObjectDetector",
    "ObjectEvidence",
    "PhotoClassifier",
    "SecondOpinion",
    "Yolox",
    "colours_of",
    "load_detector",
]
__getattr__ = importing(__name__, MODULES)
