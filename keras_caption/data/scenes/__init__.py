"""Generated images of which every object is known."""

from keras_caption.data.scenes.builder import Scenes, ScenesConfig, make_example
from keras_caption.data.scenes.statements import (
    CATEGORIES,
    judge,
    scene_objects,
    statement_accuracy,
)

__all__ = [
    "CATEGORIES",
    "Scenes",
    "ScenesConfig",
    "judge",
    "make_example",
    "scene_objects",
    "statement_accuracy",
]
