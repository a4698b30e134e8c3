from typing import Any, Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.arguments import KerasOptions, Tensor


@keras.saving.register_keras_serializable("keras_caption")
class MatrixDense(keras.layers.Dense):
    """`keras.layers.Dense` that reshapes its input to a matrix, for speed.

    The result is the same. TensorFlow fuses the product of two matrices, the bias and
    the activation to one operation; after a product of higher rank, as in Keras's
    layer, they remain three. On other backends it is Keras's layer.

    Its initializer is a copy of the one given, since all calls of one that has no seed
    give the same values: several layers may be given the same.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[KerasOptions],
    ):
        if isinstance(kernel_initializer, keras.Initializer):
            kernel_initializer = kernel_initializer.clone()
        super().__init__(
            units, activation, kernel_initializer=kernel_initializer, **kwargs
        )

    def call(
        self, inputs: Float[Tensor, "... dim"], training: bool | None = None
    ) -> Float[Tensor, "... units"]:
        if keras.backend.backend() != "tensorflow":
            return super().call(inputs, training=training)
        outputs = super().call(
            ops.reshape(inputs, (-1, inputs.shape[-1])), training=training
        )
        return ops.reshape(outputs, (*ops.shape(inputs)[:-1], self.units))

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        # Keras quantizes subclasses of `Dense` only with `type_check=False`.
        checked = type_check and type(self) is not MatrixDense
        super().quantize(mode=mode, type_check=checked, config=config)
