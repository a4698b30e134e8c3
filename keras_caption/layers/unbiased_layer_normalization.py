from typing import Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor


@keras.saving.register_keras_serializable("keras_caption")
class UnbiasedLayerNormalization(keras.layers.Layer):
    """Layer normalization of the released code of AoANet and of MCAN.

        y = gain * (x - mean) / (std + 1e-6) + offset

    with the unbiased standard deviation. `keras.layers.LayerNormalization` differs in
    two ways: its variance is biased, and its epsilon is inside the root.

    Call arguments:
        inputs: float `(..., dim)`.

    Returns:
        float `(..., dim)`.
    """

    def __init__(self, **kwargs: Unpack[KerasOptions]):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, inputs_shape: Shape) -> None:
        shape = (inputs_shape[-1],)
        self.gain = self.add_weight(shape, initializer="ones", name="gain")
        self.offset = self.add_weight(shape, initializer="zeros", name="offset")

    def call(self, inputs: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
        x = ops.cast(inputs, "float32")  # squares overflow in float16
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        squares = ops.sum(ops.square(centred), axis=-1, keepdims=True)
        # 1e-20 keeps the gradient of the root finite where all channels are equal.
        std = ops.sqrt(squares / (x.shape[-1] - 1) + 1e-20)
        normalized = ops.cast(centred / (std + 1e-6), inputs.dtype)
        return normalized * self.gain + self.offset

    def compute_output_shape(self, inputs_shape: Shape) -> Shape:
        return inputs_shape
