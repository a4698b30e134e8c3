"""Generated images with known objects."""

from keras_caption.apps.scenes.scenes.builder import Scenes, ScenesConfig, make_example
from keras_caption.apps.scenes.scenes.facts import scene_facts, with_facts
from keras_caption.apps.scenes.scenes.scene import SceneObject
from keras_caption.apps.scenes.scenes.statement_truth import StatementTruth
from keras_caption.apps.scenes.scenes.statements import (
    CATEGORIES,
    judge,
    scene_objects,
    statement_accuracy,
)

__all__ = [
    "CATEGORIES",
    "SceneObject",
    "Scenes",
    "ScenesConfig",
    "StatementTruth",
    "judge",
    "make_example",
    "scene_facts",
    "scene_objects",
    "statement_accuracy",
    "with_facts",
]
