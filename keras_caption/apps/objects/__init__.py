"""What is known of COCO's objects: detectors, their words, colours and evidence.

Detectors are imported at their first use, and Keras with them.
"""

from typing import TYPE_CHECKING

from keras_caption.base.registration import importing
from keras_caption.formats.coco_categories import CATEGORIES

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.apps.objects.coloured_objects import (
        COLOURS,
        ColouredObjects,
        colours_of,
    )
    from keras_caption.apps.objects.detectors import load_detector
    from keras_caption.apps.objects.engine_detector import EngineDetector
    from keras_caption.apps.objects.evidence import ObjectEvidence
    from keras_caption.apps.objects.hub_detector import HubDetector
    from keras_caption.apps.objects.lite_classifier import LiteClassifier
    from keras_caption.apps.objects.lite_detector import LiteDetector
    from keras_caption.apps.objects.named_colours import colour_agreement
    from keras_caption.apps.objects.named_objects import (
        hallucinations,
        object_agreement,
        object_scores,
    )
    from keras_caption.apps.objects.nanodet import NanoDet
    from keras_caption.apps.objects.object_detector import ObjectDetector
    from keras_caption.apps.objects.object_truth import ObjectTruth
    from keras_caption.apps.objects.photo_classifier import PhotoClassifier
    from keras_caption.apps.objects.place_truth import PlaceTruth
    from keras_caption.apps.objects.second_opinion import SecondOpinion
    from keras_caption.apps.objects.yolox import Yolox

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
    "ObjectTruth": ".object_truth",
    "PhotoClassifier": ".photo_classifier",
    "PlaceTruth": ".place_truth",
    "SecondOpinion": ".second_opinion",
    "Yolox": ".yolox",
    "colour_agreement": ".named_colours",
    "colours_of": ".coloured_objects",
    "hallucinations": ".named_objects",
    "load_detector": ".detectors",
    "object_agreement": ".named_objects",
    "object_scores": ".named_objects",
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
    "ObjectTruth",
    "PhotoClassifier",
    "PlaceTruth",
    "SecondOpinion",
    "Yolox",
    "colour_agreement",
    "colours_of",
    "hallucinations",
    "load_detector",
    "object_agreement",
    "object_scores",
]
if not TYPE_CHECKING:  # other names are errors
    __getattr__ = importing(__name__, MODULES)
