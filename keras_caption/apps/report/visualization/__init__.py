"""Figures of what models attend to, and of the geometry that they have learned."""

from keras_caption.apps.report.visualization.attention import (
    attention_over_memory,
    attention_over_words,
)
from keras_caption.apps.report.visualization.captions import attention_over_captions
from keras_caption.apps.report.visualization.drawing import DRAWINGS
from keras_caption.apps.report.visualization.geometry import (
    geometric_weight,
    geometric_weight_figure,
)
from keras_caption.apps.report.visualization.questions import attention_over_question

__all__ = [
    "DRAWINGS",
    "attention_over_captions",
    "attention_over_memory",
    "attention_over_question",
    "attention_over_words",
    "geometric_weight",
    "geometric_weight_figure",
]
