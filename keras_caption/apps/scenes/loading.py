"""The built-in datasets, for `keras_caption.datasets.load`."""

from collections.abc import Callable
from typing import Any

from keras_caption.apps.scenes.moving_scenes import MovingScenes
from keras_caption.apps.scenes.scenes import Scenes
from keras_caption.base.errors import InputError
from keras_caption.datasets.building import make_builder


def _built_in(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    def load_built_in(folder, **kwargs):
        if folder is not None:
            raise InputError(
                f"The dataset {name} is built in, and not read from {folder}."
            )
        return make_builder(name, make, **kwargs)

    return load_built_in


load_scenes = _built_in("scenes", Scenes)
load_moving_scenes = _built_in("moving_scenes", MovingScenes)
