"""Initializers of kernels in official code that differ from Keras's.

The branches of post-norm blocks begin smaller than with Glorot's of each kernel, which
is Keras's default. With it, four blocks of a translator learn to make all positions of
the memory the same, and a co-attention network learns much more slowly.
"""

from typing import Any

import keras

# PyTorch's linear layers.
LINEAR = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
# Queries, keys and values in fairseq: Glorot's of the three as one matrix.
PROJECTIONS = keras.initializers.VarianceScaling(1 / 2, "fan_avg", "uniform")


@keras.saving.register_keras_serializable("keras_caption")
class ScaledInitializer(keras.Initializer):
    """Another initializer's values, multiplied by a number.

    Args:
        initializer: Keras initializer, or its name.
        scale: float, what the values are multiplied by.
    """

    def __init__(self, initializer: str | keras.Initializer, scale: float):
        self.initializer = keras.initializers.get(initializer)
        self.scale = scale

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return self.initializer(shape, dtype=dtype, **kwargs) * self.scale

    def get_config(self) -> dict[str, Any]:
        serialized = keras.saving.serialize_keras_object(self.initializer)
        return {"initializer": serialized, "scale": self.scale}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "ScaledInitializer":
        return cls(**keras.saving.deserialize_keras_object(config))
