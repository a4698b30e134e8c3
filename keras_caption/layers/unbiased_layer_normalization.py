import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class UnbiasedLayerNormalization(keras.layers.Layer):
    """Layer normalization as AoANet's released code has it.

        y = gain * (x - mean) / (std + 1e-6) + offset

    `keras.layers.LayerNormalization` differs in two ways: its deviation is the
    biased one, and its epsilon is inside the root.

    Call arguments:
        inputs: `(..., dim)`.

    Returns:
        `(..., dim)`.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, inputs_shape):
        shape = (inputs_shape[-1],)
        self.gain = self.add_weight(shape, initializer="ones", name="gain")
        self.offset = self.add_weight(shape, initializer="zeros", name="offset")

    def call(self, inputs):
        x = ops.cast(inputs, "float32")  # half precision has no room for squares
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        squares = ops.sum(ops.square(centred), axis=-1, keepdims=True)
        # The small number keeps the root's gradient finite where all are equal.
        std = ops.sqrt(squares / (x.shape[-1] - 1) + 1e-20)
        normalized = ops.cast(centred / (std + 1e-6), inputs.dtype)
        return normalized * self.gain + self.offset

    def compute_output_shape(self, inputs_shape):
        return inputs_shape
