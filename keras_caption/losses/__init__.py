"""Losses of captions, of translations, and of answers."""

from keras_caption.losses.answer_cross_entropy import AnswerCrossEntropy, answer_loss
from keras_caption.losses.caption_cross_entropy import CaptionCrossEntropy

__all__ = ["AnswerCrossEntropy", "CaptionCrossEntropy", "answer_loss"]
