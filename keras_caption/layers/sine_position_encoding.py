from typing import Unpack

import keras
from jaxtyping import Float, Int
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor


@keras.saving.register_keras_serializable("keras_caption")
class SinePositionEncoding(keras.layers.Layer):
    """Sinusoidal encoding of positions, to be added to embeddings.

    Vaswani et al., "Attention Is All You Need", NeurIPS 2017, Section 3.5: channels
    `2 i` and `2 i + 1` of position p are the sine and the cosine of
    `p / 10000^(2 i / dim)`. KerasHub's layer of this name computes the same, but in
    half precision if that is the policy: adjacent late positions then become equal.

    Call arguments:
        inputs: `(batch, T, dim)`, of which only the shape matters.
        start_index: int scalar, the position of the first row. Defaults to 0.

    Returns:
        `(batch, T, dim)`.
    """

    def __init__(self, **kwargs: Unpack[KerasOptions]):
        super().__init__(**kwargs)
        # It has no weights, and thus no `build`.
        self.built = True

    def call(
        self,
        inputs: Float[Tensor, "batch T dim"],
        start_index: int | Int[Tensor, ""] = 0,
    ) -> Float[Tensor, "batch T dim"]:
        shape = ops.shape(inputs)
        channels = ops.arange(shape[-1])
        # Half precision cannot distinguish late positions.
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        positions = ops.cast(ops.arange(shape[-2]) + start_index, dtype)
        # Channels 2 i and 2 i + 1 share the frequency 10000^(-2 i / dim).
        exponents = ops.cast(channels // 2 * 2, dtype) / ops.cast(shape[-1], dtype)
        frequencies = ops.power(ops.cast(1e-4, dtype), exponents)
        angles = ops.expand_dims(positions, 1) * frequencies
        encoding = ops.where(channels % 2 == 0, ops.sin(angles), ops.cos(angles))
        return ops.broadcast_to(ops.cast(encoding, self.compute_dtype), shape)

    def compute_output_shape(
        self, inputs_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return inputs_shape
