"""Draws figures of the papers from finished runs."""

from keras_caption.apps.report.figures.curves import curves_figure
from keras_caption.apps.report.figures.examples import attention_figure, captions_figure

__all__ = ["attention_figure", "captions_figure", "curves_figure"]
