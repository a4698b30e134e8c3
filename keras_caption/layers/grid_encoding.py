import keras
import keras_hub
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class GridEncoding(keras.layers.Layer):
    """Adds sinusoidal encodings of row and column to the features of a grid.

    The row's sines and cosines go to the first half of the channels, the column's
    to the second, as those of a word's position do in a Transformer.

    Call arguments:
        inputs: `(batch, height, width, dim)`; `dim` must be divisible by 4.

    Returns:
        `(batch, height, width, dim)`.

    Raises:
        ValueError: If `dim` is not divisible by 4.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.positions = keras_hub.layers.SinePositionEncoding(dtype=self.dtype_policy)

    def build(self, inputs_shape):
        if inputs_shape[-1] % 4:
            raise ValueError(
                "GridEncoding needs a number of channels divisible by 4. "
                f"Received inputs of shape {tuple(inputs_shape)}"
            )

    def call(self, inputs):
        _, height, width, dim = ops.shape(inputs)

        def encode(length):
            return self.positions(ops.zeros((1, length, dim // 2), inputs.dtype))

        shape = (1, height, width, dim // 2)
        rows = ops.broadcast_to(ops.expand_dims(encode(height), 2), shape)
        columns = ops.broadcast_to(ops.expand_dims(encode(width), 1), shape)
        return inputs + ops.concatenate([rows, columns], axis=-1)
