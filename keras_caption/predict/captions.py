"""Captions as predictions, and their confidence by tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32

from keras_caption.predict.prediction import Prediction
from keras_caption.text import PAD


def confidences_of(
    tokens: Int32[np.ndarray, "batch T"], scores: Float32[np.ndarray, " batch"]
) -> Float32[np.ndarray, " batch"]:
    """Computes confidences of generated texts, to be compared with `threshold`.

    Args:
        tokens: int32 `(batch, T)`, token ids, then PAD.
        scores: float32 `(batch,)`, log-probabilities.

    Returns:
        float32 `(batch,)`, the geometric means of the tokens' probabilities.
    """
    lengths = np.count_nonzero(np.asarray(tokens) != PAD, axis=1)
    return np.exp(np.asarray(scores) / np.maximum(lengths, 1))


def captions_of(
    best: Sequence[list[tuple[str, float]]],
    tokens: Int32[np.ndarray, "batch T"],
    scores: Float32[np.ndarray, " batch"],
    model: Any,
) -> list[Prediction]:
    """Makes predictions of generated texts.

    Args:
        best: List of pairs of a text and its score for each example, the best first.
        tokens, scores: Of the best text of each example, see `confidences_of`.
        model: The model, or `keras_caption.predict.engine.Engine`, for its `threshold`.
    """
    # With a calibration, the threshold is one of confidences that `judge_by_objects`
    # computes.
    is_mean = not getattr(model, "calibration", None)
    return [
        Prediction(
            *texts[0], sure, is_mean and sure < model.threshold, texts, tokens=row
        )
        for texts, row, sure in zip(
            best, tokens, map(float, confidences_of(tokens, scores)), strict=True
        )
    ]
