"""How the kernels of Transformer blocks begin.

With Glorot's initializer of each kernel, which is Keras's default, the branches of
post-norm blocks are as large as the residual: each block makes the positions of the
memory more alike, four blocks of a translator learn to make them the same, and deeper
captioners learn later than shallow ones. `INITIALIZATIONS` has that start, and smaller
ones; docs/results/effects.md compares them.
"""

import dataclasses
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


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Initializers of the kernels of a block.

    Attributes:
        projections: Of queries, keys and values.
        output: Of the output projection of attention.
        feedforward: Of both feed-forward layers.
    """

    projections: str | keras.Initializer = "glorot_uniform"
    output: str | keras.Initializer = "glorot_uniform"
    feedforward: str | keras.Initializer = "glorot_uniform"

    @property
    def of_attention(self) -> dict[str, Any]:
        """Keywords of `keras_caption.models.make_attention`."""
        return {
            "kernel_initializer": self.projections,
            "output_initializer": self.output,
        }


# By name, the option `initialization` of every model with Transformer blocks.
INITIALIZATIONS = {
    # Ours: attention's branches begin at a third.
    "small": Kernels(PROJECTIONS, ScaledInitializer("glorot_uniform", 1 / 3), LINEAR),
    "fairseq": Kernels(PROJECTIONS, "glorot_uniform", LINEAR),
    "glorot": Kernels(),
}
