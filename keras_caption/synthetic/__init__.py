"""Generated images, clips and sentences with known content."""

from keras_caption.synthetic.moving_scenes import MovingScenes, MovingScenesConfig
from keras_caption.synthetic.scenes import Scenes, ScenesConfig
from keras_caption.synthetic.statements import Statements, statements_of

__all__ = [
    "MovingScenes",
    "MovingScenesConfig",
    "Scenes",
    "ScenesConfig",
    "Statements",
    "statements_of",
]
