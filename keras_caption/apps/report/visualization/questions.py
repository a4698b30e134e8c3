from typing import Any

import numpy as np
from jaxtyping import UInt8
from keras import ops
from matplotlib.figure import Figure, SubFigure

from keras_caption.apps.report.visualization.attention import (
    LEGEND_HEIGHT,
    MIN_WIDTH,
    PANEL,
    TEXT,
    add_legend,
    labels_of,
    names_of,
    read_one,
    show,
)
from keras_caption.apps.report.visualization.fonts import find_fonts
from keras_caption.base.errors import InputError
from keras_caption.inputs import Regions

SHOWN = 2  # regions
LEGEND = "The two regions that attend most to each word, and their shares of attention."


def attention_over_question(
    model: Any,
    inputs: dict[str, Any],
    question: str,
    image: UInt8[np.ndarray, "height width 3"] | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """Plots the two regions that attend most to each word of a question.

    Each word has a panel. It frames the two regions and labels them with the share of
    their attention to the word in the last block; a greater share has a clearer frame.

    Args:
        model: `keras_caption.models.MCAN` with a tokenizer.
        inputs: dict of the model's inputs for one image, batch size 1, but for the
            question.
        question: str.
        image: uint8 `(height, width, 3)`, shown in every panel. Defaults to white.
        figure: `matplotlib.figure.Figure` or `SubFigure` to plot into. Defaults to a
            new one.

    Returns:
        The figure; `figure.savefig(path)` writes a new one.

    Raises:
        InputError: If the question has no words, there is more than one image, or the
            image has a fault.
    """
    tokens = model.question_tokens([question])
    words = model.question.split(question)[: tokens.shape[1]]
    if not words:
        raise InputError(f"There is no word in the question {question!r:.60}.")
    inputs = {**inputs, "question": tokens}
    inputs = read_one(model, inputs)
    weights = ops.convert_to_numpy(model.attention(inputs))[0]
    [kind] = (kind for kind in model.kinds if isinstance(kind, Regions))
    valid = ops.convert_to_numpy(kind.memory_mask(kind.complete(inputs)))[0]
    weights = np.where(valid[:, None], weights, 0.0)  # padding attends to words too
    if image is None:
        image = kind.blank(inputs)
    if figure is None:
        size = max(PANEL * len(words), MIN_WIDTH), PANEL + LEGEND_HEIGHT
        figure = Figure(figsize=size, layout="constrained")
        add_legend(figure, LEGEND)
    panels = figure.subplots(1, len(words), squeeze=False)[0]
    names = names_of(model, inputs)
    for number, (panel, word) in enumerate(zip(panels, words, strict=True)):
        word_weights = weights[:, number]
        labels = labels_of(names, word_weights)
        word_weights = word_weights / max(word_weights.max(), 1e-9)
        word_weights[np.argsort(word_weights)[:-SHOWN]] = 0.0
        show(panel, kind, {**inputs, "labels": labels}, word_weights, image)
        panel.set_title(word, **TEXT)
    return find_fonts(figure)
