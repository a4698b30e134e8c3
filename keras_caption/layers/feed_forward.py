from typing import Any

import keras

from keras_caption.arguments import Shape, Tensor
from keras_caption.layers.matrix_dense import MatrixDense


@keras.saving.register_keras_serializable("keras_caption")
class FeedForward(keras.layers.Layer):
    """The position-wise feed-forward part of a post-norm Transformer block.

        y = LayerNorm(x + Dropout(W_2 ReLU(W_1 x + b_1) + b_2))

    Args:
        hidden_dim: int, size of the hidden layer.
        dropout: float, dropout rate of the residual branch. Defaults to 0.1.
        kernel_initializer: Keras initializer, or its name, of W_1 and W_2. Defaults to
            `"glorot_uniform"`.

    Call arguments:
        inputs: float `(..., dim)`.

    Returns:
        float `(..., dim)`.
    """

    def __init__(
        self,
        hidden_dim: int,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.hidden_dim = hidden_dim
        self.dropout = dropout
        self.kernel_initializer = kernel_initializer
        policy = self.dtype_policy
        self.hidden_dense = MatrixDense(
            hidden_dim,
            activation="relu",
            kernel_initializer=kernel_initializer,
            dtype=policy,
            name="hidden",
        )
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)
        self.norm = keras.layers.LayerNormalization(dtype=policy)

    def build(self, input_shape: Shape) -> None:
        dim = input_shape[-1]
        self.output_dense = MatrixDense(
            dim,
            kernel_initializer=self.kernel_initializer,
            dtype=self.dtype_policy,
            name="output",
        )
        self.hidden_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.hidden_dim))
        self.norm.build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        branch = self.output_dense(self.hidden_dense(inputs))
        return self.norm(inputs + self.dropout_layer(branch))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "dropout": self.dropout,
            "kernel_initializer": serialize(self.kernel_initializer),
        }
