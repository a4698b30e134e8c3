from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.text import PAD
from keras_caption.visualization.attention import (
    WIDTH,
    attention_over_words,
    height_of,
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
        InputError: As `attention_over_words` raises it.
    """
    captions, heights = list(captions), []
    for inputs, tokens, image in captions:
        shown = model.memory_kind.blank(inputs) if image is None else image
        heights.append(height_of(shown, np.count_nonzero(tokens != PAD)))
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(captions), height_ratios=heights, squeeze=False)
    for part, (inputs, tokens, image) in zip(parts[:, 0], captions, strict=True):
        attention_over_words(model, inputs, tokens, image, part)
    return figure
