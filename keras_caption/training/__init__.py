"""Training: losses, schedules, callbacks, and the recipe that combines them."""

from keras_caption.training.callbacks import (
    CaptionValidation,
    Checkpoint,
    EpochSeeds,
    HalveOnPlateau,
    StopIfNotFinite,
    TensorBoardLogs,
    captioner_of,
)
from keras_caption.training.losses import CaptionCrossEntropy
from keras_caption.training.replicas import sum_over_replicas
from keras_caption.training.schedules import ScheduledSampling, WarmupStepDecay
from keras_caption.training.self_critical import SelfCritical
from keras_caption.training.teacher_forcing import teacher_forcing

__all__ = [
    "CaptionCrossEntropy",
    "CaptionValidation",
    "Checkpoint",
    "EpochSeeds",
    "HalveOnPlateau",
    "ScheduledSampling",
    "SelfCritical",
    "StopIfNotFinite",
    "TensorBoardLogs",
    "WarmupStepDecay",
    "captioner_of",
    "sum_over_replicas",
    "teacher_forcing",
]
