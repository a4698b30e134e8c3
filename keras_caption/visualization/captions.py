from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from keras_caption.errors import InputError
from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.visualization.attention import (
    WIDTH,
    attention_over_words,
    check_one,
    height_of,
    tokens_of,
)


def attention_over_captions(
    model: Seq2Seq | Ensemble,
    captions: Iterable[tuple[dict[str, Any], np.ndarray, np.ndarray | None]],
) -> Figure:
    """Plots what a captioner attends to in several captions, one below another.

    Args:
        model: `keras_caption.models.Captioner` or `Ensemble`.
        captions: Iterable of `inputs`, `tokens` and `image`, as
            `keras_caption.visualization.attention_over_words` takes them.

    Returns:
        The figure; `figure.savefig(path)` writes it.

    Raises:
        InputError: If there are none, or as `attention_over_words` raises it.
    """
    captions, heights = list(captions), []
    if not captions:
        raise InputError("There is no caption to show attention for.")
    for inputs, tokens, image in captions:
        check_one(model, inputs)
        shown = model.memory_kind.blank(inputs) if image is None else image
        heights.append(height_of(shown, len(tokens_of(tokens))))
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(captions), height_ratios=heights, squeeze=False)
    for part, (inputs, tokens, image) in zip(parts[:, 0], captions, strict=True):
        attention_over_words(model, inputs, tokens, image, part)
    return figure
