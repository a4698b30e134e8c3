from typing import Any, Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor


@keras.saving.register_keras_serializable("keras_caption")
class MatrixDense(keras.layers.Dense):
    """A `keras.layers.Dense` that reshapes its input to a matrix, for speed.

    The result is the same. TensorFlow fuses matrix product, bias and activation into
    one operation, but not after a product of higher rank, which Keras's layer computes.
    On other backends the layer is Keras's.

    The layer clones its initializer. Every call of the same unseeded initializer object
    returns the same values, so that layers sharing one would start with equal weights.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[KerasOptions],
    ):
        # See the class: an initializer object may be shared by several layers.
        if isinstance(kernel_initializer, keras.Initializer):
            kernel_initializer = kernel_initializer.clone()
        super().__init__(units, activation, use_bias, kernel_initializer, **kwargs)

    def call(
        self, inputs: Float[Tensor, "... dim"], training: bool | None = None
    ) -> Float[Tensor, "... units"]:
        if keras.backend.backend() != "tensorflow":
            return super().call(inputs, training=training)
        # (..., dim) -> (rows, dim): the product of two matrices that TensorFlow fuses.
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
