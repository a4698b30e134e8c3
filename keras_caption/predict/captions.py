"""What is said of captions beside their text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32

from keras_caption.features.object_words import least_score, several_of_one
from keras_caption.predict.prediction import Prediction
from keras_caption.text import PAD


def confidences_of(
    tokens: Float32[np.ndarray, "batch T"], scores: Float32[np.ndarray, " batch"]
) -> Float32[np.ndarray, " batch"]:
    """How sure a model is of what it generated, to compare with `threshold`.

    Args:
        tokens: int32 `(batch, T)`, token ids, then PAD.
        scores: float32 `(batch,)`, log-probabilities.

    Returns:
        float32 `(batch,)`, the geometric means of the tokens' probabilities.
    """
    lengths = np.count_nonzero(np.asarray(tokens) != PAD, axis=1)
    return np.exp(np.asarray(scores) / np.maximum(lengths, 1))


def judge_by_objects(
    caption: Prediction,
    calibration: Sequence[Sequence[float]] | None,
    threshold: float,
) -> None:
    """Compares a caption with the objects that are detected.

    Args:
        caption: `Prediction`, with its objects, whose confidence becomes that of the
            objects that it names, if there is a calibration.
        calibration, threshold: Attributes of `keras_caption.models.Captioner`.
    """
    if calibration:
        least = least_score(caption.text, caption.objects)
        caption.confidence = float(np.interp(least, *np.transpose(calibration)))
        caption.unsure = caption.confidence < threshold
    if several_of_one(caption.text, categories_of(caption.objects)):
        caption.unsure = True


def categories_of(objects: Sequence[dict[str, Any]]) -> list[str]:
    """The category of each detected object."""
    return [detected["category"] for detected in objects]
