import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class MatrixDense(keras.layers.Dense):
    """`keras.layers.Dense`, its input folded to a matrix before it is multiplied.

    The result is the same. The product of two matrices, the bias and the activation
    are then next to each other in the graph, where TensorFlow runs them as one
    operation; behind Keras's product of higher rank they are three. On other backends
    nothing is folded.
    """

    def call(self, inputs, training=None):
        if keras.backend.backend() != "tensorflow":
            return super().call(inputs, training=training)
        outputs = super().call(
            ops.reshape(inputs, (-1, inputs.shape[-1])), training=training
        )
        return ops.reshape(outputs, (*ops.shape(inputs)[:-1], self.units))

    def quantize(self, mode=None, type_check=True, config=None):
        # Keras quantizes subclasses of `Dense` only with `type_check=False`.
        checked = type_check and type(self) is not MatrixDense
        super().quantize(mode=mode, type_check=checked, config=config)
