"""Configs of layers, from the signatures of their constructors."""

import inspect
from typing import Any

import keras


def arguments_of(made: Any, kind: type) -> dict[str, Any]:
    """The arguments of a constructor, as a config has them.

    Args:
        made: Layer, or another object with a config, that keeps each argument as the
            attribute of the same name.
        kind: Class whose constructor names the arguments: that of `made`, or a base.

    Returns:
        dict from name to value, serialized by Keras, without those of `**kwargs`.
    """
    named = inspect.getfullargspec(vars(kind)["__init__"])
    return {
        name: keras.saving.serialize_keras_object(getattr(made, name))
        for name in (*named.args[1:], *named.kwonlyargs)
    }
