from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from keras_caption.apps.report.visualization.attention import (
    LEGEND_HEIGHT,
    WIDTH,
    Row,
    add_legend,
)
from keras_caption.apps.report.visualization.fonts import find_fonts
from keras_caption.base.errors import InputError
from keras_caption.models import Ensemble, Seq2Seq


def attention_over_captions(
    model: Seq2Seq | Ensemble,
    captions: Iterable[tuple[dict[str, Any], np.ndarray, np.ndarray | None]],
    marks: Iterable[str] | None = None,
) -> Figure:
    """Plots the attention of a captioner in several captions, one below another.

    Args:
        model: `keras_caption.models.Captioner` or `Ensemble`.
        captions: Iterable of `inputs`, `tokens` and `image`, as
            `keras_caption.visualization.attention_over_words` takes them.
        marks: Iterable of str, which stand behind the captions. Defaults to none.

    Returns:
        The figure; `figure.savefig(path)` writes it.

    Raises:
        InputError: If there are no captions; see also `attention_over_words`.
    """
    rows = [Row(model, *caption) for caption in captions]
    if not rows:
        raise InputError("There is no caption to show attention for.")
    if marks is not None:
        for row, mark in zip(rows, marks, strict=True):
            row.caption += f"   [{mark}]"
    heights = [row.height for row in rows]
    size = WIDTH, sum(heights) + LEGEND_HEIGHT
    figure = Figure(figsize=size, layout="constrained")
    parts = figure.subfigures(len(rows), height_ratios=heights, squeeze=False)
    columns = max(len(row.panels) for row in rows)
    for part, row in zip(parts[:, 0], rows, strict=True):
        row.plot(model, part, columns)
    add_legend(figure)
    return find_fonts(figure)
