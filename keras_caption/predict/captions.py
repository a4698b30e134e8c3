"""Confidence of captions, by their tokens."""

import numpy as np
from jaxtyping import Float32

from keras_caption.text import PAD


def confidences_of(
    tokens: Float32[np.ndarray, "batch T"], scores: Float32[np.ndarray, " batch"]
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
