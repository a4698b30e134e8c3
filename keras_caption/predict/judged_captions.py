"""Confidence of captions by detected objects."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_caption.objects.object_words import least_score, several_of_one
from keras_caption.predict.prediction import Prediction


def judge_by_objects(
    caption: Prediction,
    calibration: Sequence[Sequence[float]] | None,
    threshold: float,
) -> None:
    """Sets the confidence of a caption by its detected objects.

    With a calibration, the confidence follows from the least score of the objects that
    the caption names. A plural for an object that is detected once makes it unsure.

    Args:
        caption: `Prediction` with its objects, which is changed.
        calibration, threshold: As the attributes of `keras_caption.models.Captioner`.
    """
    if calibration:
        least = least_score(caption.text, caption.objects)
        caption.confidence = float(np.interp(least, *np.transpose(calibration)))
        caption.unsure = caption.confidence < threshold
    if several_of_one(caption.text, categories_of(caption.objects)):
        caption.unsure, caption.doubt = True, "only one is detected"


def categories_of(objects: Sequence[dict[str, Any]]) -> list[str]:
    """The category of each detected object."""
    return [detected["category"] for detected in objects]
