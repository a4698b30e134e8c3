"""Initializers of the kernels of Transformer blocks.

Keras's default is Glorot's initializer for each kernel. With it the branches of
post-norm blocks are as large as the residual. Each block then makes the positions of
the memory more alike: four blocks of a translator learn to make them the same, and deep
captioners learn later than shallow ones. `INITIALIZATIONS` has this default and
initializers of smaller values; docs/results/effects.md compares them.
"""

import dataclasses
from typing import Any

import keras

# Version of the start of the weights, which runs record, so that tables can mark scores
# of another. Add one whenever any model of the library begins with other weights than
# before. 1: Glorot's initializer throughout captioners; 2: `"small"`, the default.
INITIALIZATION_VERSION = 2

# The default of PyTorch's linear layers: uniform in ±1 / sqrt(fan_in), a variance of
# 1 / (3 fan_in).
LINEAR = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
# fairseq applies Glorot's initializer to queries, keys and values as one matrix, of
# fan-out 3 d. The variance is then 2 / (d + 3 d), half of that of a square matrix.
PROJECTIONS = keras.initializers.VarianceScaling(1 / 2, "fan_avg", "uniform")


@keras.saving.register_keras_serializable("keras_caption")
class ScaledInitializer(keras.Initializer):
    """Multiplies the values of another initializer by a number.

    Args:
        initializer: Keras initializer, or its name.
        scale: float, factor of the values.
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
        projections: Initializer of the projections of queries, keys and values.
        output: Initializer of the output projection of attention.
        feedforward: Initializer of both feed-forward layers.
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


# Values of the option `initialization` of every model with Transformer blocks.
INITIALIZATIONS = {
    # Ours: the branches of attention begin at a third of their size.
    "small": Kernels(PROJECTIONS, ScaledInitializer("glorot_uniform", 1 / 3), LINEAR),
    "fairseq": Kernels(PROJECTIONS, "glorot_uniform", LINEAR),
    "glorot": Kernels(),
}
