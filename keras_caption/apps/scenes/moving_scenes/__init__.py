"""Generated clips with known objects and events."""

from keras_caption.apps.scenes.moving_scenes.builder import (
    MovingScenes,
    MovingScenesConfig,
    make_example,
)
from keras_caption.apps.scenes.moving_scenes.captions import describe
from keras_caption.apps.scenes.moving_scenes.clip import (
    VERBS,
    Event,
    MovingObject,
    MovingScene,
)
from keras_caption.apps.scenes.moving_scenes.statements import (
    CATEGORIES,
    judge,
    objects_and_events,
    statement_accuracy,
)
from keras_caption.apps.scenes.moving_scenes.stories import sample_clip

__all__ = [
    "CATEGORIES",
    "VERBS",
    "Event",
    "MovingObject",
    "MovingScene",
    "MovingScenes",
    "MovingScenesConfig",
    "describe",
    "judge",
    "make_example",
    "objects_and_events",
    "sample_clip",
    "statement_accuracy",
]
