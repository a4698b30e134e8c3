"""Batches for models, made from examples of images, questions and sentences."""

from keras_caption.batches.answers import build_answers, soft_scores
from keras_caption.batches.pipeline import (
    BatchOptions,
    grouped,
    image_batches,
    reference_batches,
    reference_tokens,
    train_batches,
)
from keras_caption.batches.question_batches import EncodedQuestions

__all__ = [
    "BatchOptions",
    "EncodedQuestions",
    "build_answers",
    "grouped",
    "image_batches",
    "reference_batches",
    "reference_tokens",
    "soft_scores",
    "train_batches",
]
