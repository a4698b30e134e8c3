"""Generated images, clips and sentences with known content."""

from keras_caption.datasets.statements import Statements, statements_of
from keras_caption.synthetic.moving_scenes import MovingScenes, MovingScenesConfig
from keras_caption.synthetic.scenes import Scenes, ScenesConfig

# Names of the built-in datasets, which are generated.
GENERATED = ("scenes", "moving_scenes", "scene_questions", "scene_sentences")

__all__ = [
    "GENERATED",
    "MovingScenes",
    "MovingScenesConfig",
    "Scenes",
    "ScenesConfig",
    "Statements",
    "statements_of",
]
