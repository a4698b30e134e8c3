"""Figures of what models attend to."""

from keras_caption.visualization.attention import (
    attention_over_regions,
    attention_over_words,
)

__all__ = ["attention_over_regions", "attention_over_words"]
