"""Losses of captions, of translations, and of answers."""

from keras_caption.losses.answer_cross_entropy import AnswerCrossEntropy
from keras_caption.losses.sequence_cross_entropy import SequenceCrossEntropy

__all__ = ["AnswerCrossEntropy", "SequenceCrossEntropy"]
