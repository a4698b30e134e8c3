"""Training: losses, schedules, callbacks, phases, and the records of a run."""

from keras_caption.base.replicas import sum_over_replicas
from keras_caption.losses import AnswerCrossEntropy, SequenceCrossEntropy
from keras_caption.training.accumulation import AccumulatingTrainer
from keras_caption.training.answer_validation import AnswerValidation, answer_questions
from keras_caption.training.averaged_validation import AveragedValidation
from keras_caption.training.callbacks import (
    CaptionValidation,
    Checkpoint,
    EpochSeeds,
    HalveOnPlateau,
    StopIfNotFinite,
    TensorBoardLogs,
    TranslationValidation,
    model_of,
)
from keras_caption.training.early_stopping import StopEarly
from keras_caption.training.inverse_square_root import InverseSquareRoot
from keras_caption.training.scheduled_sampling import ScheduledSamplingTrainer
from keras_caption.training.schedules import ScheduledSampling, WarmupStepDecay
from keras_caption.training.self_critical import SelfCritical
from keras_caption.training.task import Task
from keras_caption.training.validation_loss import ValidationLoss

__all__ = [
    "AccumulatingTrainer",
    "AnswerCrossEntropy",
    "AnswerValidation",
    "AveragedValidation",
    "CaptionValidation",
    "Checkpoint",
    "EpochSeeds",
    "HalveOnPlateau",
    "InverseSquareRoot",
    "ScheduledSampling",
    "ScheduledSamplingTrainer",
    "SelfCritical",
    "SequenceCrossEntropy",
    "StopEarly",
    "StopIfNotFinite",
    "Task",
    "TensorBoardLogs",
    "TranslationValidation",
    "ValidationLoss",
    "WarmupStepDecay",
    "answer_questions",
    "model_of",
    "sum_over_replicas",
]
