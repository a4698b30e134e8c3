from typing import Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.errors import InputError
from keras_caption.layers.sine_position_encoding import SinePositionEncoding
from keras_caption.layers.sockets import size_of


@keras.saving.register_keras_serializable("keras_caption")
class GridEncoding(keras.layers.Layer):
    """Adds sinusoidal encodings of row and column to the features of a grid.

    The first half of the channels encodes the row, the second the column, each as a
    Transformer encodes the position of a token.

    Call arguments:
        inputs: float `(batch, height, width, dim)`; `dim` must be divisible by 4.

    Returns:
        float `(batch, height, width, dim)`.

    Raises:
        InputError: If `dim` is not divisible by 4.
    """

    def __init__(self, **kwargs: Unpack[KerasOptions]):
        super().__init__(**kwargs)
        self.positions = SinePositionEncoding(dtype=self.dtype_policy)

    def build(self, inputs_shape: Shape) -> None:
        if size_of(inputs_shape) % 4:
            raise InputError(
                "GridEncoding needs a number of channels divisible by 4. "
                f"Received inputs of shape {tuple(inputs_shape)}"
            )

    def call(
        self, inputs: Float[Tensor, "batch height width dim"]
    ) -> Float[Tensor, "batch height width dim"]:
        _, height, width, dim = ops.shape(inputs)

        def encode(length):
            # Only the shape of its input matters to the encoding.
            return self.positions(ops.zeros((1, length, dim // 2), inputs.dtype))

        shape = (1, height, width, dim // 2)
        rows = ops.broadcast_to(ops.expand_dims(encode(height), 2), shape)
        columns = ops.broadcast_to(ops.expand_dims(encode(width), 1), shape)
        return inputs + ops.concatenate([rows, columns], axis=-1)
