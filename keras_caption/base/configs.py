"""Configs of layers, from the signatures of their constructors."""

import inspect
from typing import Any, Self

import keras


class ConfiguredLayer(keras.layers.Layer):
    """A layer whose config is the arguments of its constructors.

    It keeps each argument as the attribute of the same name, except those from which
    its constructor makes arguments of the base class. Arguments may be other layers.
    """

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for kind in type(self).__mro__:
            if issubclass(kind, ConfiguredLayer) and "__init__" in vars(kind):
                config |= arguments_of(self, kind)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**keras.saving.deserialize_keras_object(config))


def arguments_of(made: Any, kind: type) -> dict[str, Any]:
    """The arguments of a constructor, as a config has them.

    Args:
        made: Layer, or another object with a config, that keeps each argument as the
            attribute of the same name.
        kind: Class whose constructor names the arguments: that of `made`, or a base.

    Returns:
        dict from name to value, serialized by Keras, without those of `**kwargs` and
        those that are no attributes.
    """
    named = inspect.getfullargspec(vars(kind)["__init__"])
    return {
        name: keras.saving.serialize_keras_object(getattr(made, name))
        for name in (*named.args[1:], *named.kwonlyargs)
        if hasattr(made, name)
    }
