"""Training: losses, schedules, callbacks, and the recipe that combines them."""

from keras_caption.training.callbacks import (
    CaptionValidation,
    Checkpoint,
    EpochSeeds,
)
from keras_caption.training.losses import CaptionCrossEntropy
from keras_caption.training.schedules import WarmupStepDecay

__all__ = [
    "CaptionCrossEntropy",
    "CaptionValidation",
    "Checkpoint",
    "EpochSeeds",
    "WarmupStepDecay",
]
