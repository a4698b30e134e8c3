from typing import Any, Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.base.errors import InputError
from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.sockets import size_of
from keras_caption.layers.unbiased_layer_normalization import (
    UnbiasedLayerNormalization,
)

ACTIVATIONS = {
    "relu": "relu",
    "swish": "silu",
    # Keras's "gelu" is an approximation by tanh; this one is exact.
    "gelu": lambda x: ops.gelu(x, approximate=False),
}
# Functions that make the norm of a branch from epsilon and a layer's keywords.
BLOCK_NORMS = {
    "layer": lambda epsilon, **kwargs: keras.layers.LayerNormalization(
        epsilon=epsilon, **kwargs
    ),
    "unbiased": lambda epsilon, **kwargs: UnbiasedLayerNormalization(**kwargs),
}


@keras.saving.register_keras_serializable("keras_caption")
class FeedForward(ConfiguredLayer):
    """The position-wise feed-forward part of a Transformer block.

        y = LayerNorm(x + Dropout(W_2 f(W_1 x + b_1) + b_2))      (post-norm)
        y = x + Dropout(W_2 f(W_1 LayerNorm(x) + b_1) + b_2)      (pre-norm)

    Args:
        hidden_dim: int, size of the hidden layer.
        dropout: float, dropout rate of the residual branch. Defaults to 0.1.
        kernel_initializer: Keras initializer, or its name, of W_1 and W_2. Defaults to
            `"glorot_uniform"`.
        norm_position: str, `"post"` or `"pre"`. Defaults to `"post"`.
        norm: str, kind of `LayerNorm`, one of `BLOCK_NORMS`. Defaults to `"layer"`.
        norm_epsilon: float, added to the variance by `"layer"`. Defaults to 1e-3.
            `"unbiased"` ignores it and adds 1e-6 to the standard deviation.
        activation: str, f, one of `ACTIVATIONS`. Defaults to `"relu"`.
        activation_dropout: float, dropout rate of the hidden layer. Defaults to 0.

    Call arguments:
        inputs: float `(..., dim)`.

    Returns:
        float `(..., dim)`.

    Raises:
        InputError: If the activation, the norm or its position is unknown.
    """

    def __init__(
        self,
        hidden_dim: int,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        norm_position: str = "post",
        norm: str = "layer",
        norm_epsilon: float = 1e-3,
        activation: str = "relu",
        activation_dropout: float = 0.0,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        for name, value, known in (
            ("activation", activation, ACTIVATIONS),
            ("norm", norm, BLOCK_NORMS),
            ("norm_position", norm_position, ("post", "pre")),
        ):
            if value not in known:
                raise InputError(
                    f"`{name}` must be one of {', '.join(known)}. Received: {value!r}"
                )
        self.supports_masking = True
        self.hidden_dim = hidden_dim
        self.dropout = dropout
        self.kernel_initializer = kernel_initializer
        self.norm_position = norm_position
        self.norm_kind = norm
        self.norm_epsilon = norm_epsilon
        self.activation = activation
        self.activation_dropout = activation_dropout
        policy = self.dtype_policy
        self.hidden_dense = MatrixDense(
            hidden_dim,
            activation=ACTIVATIONS[activation],
            kernel_initializer=kernel_initializer,
            dtype=policy,
            name="hidden",
        )
        self.hidden_dropout = keras.layers.Dropout(activation_dropout, dtype=policy)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)
        self.norm = BLOCK_NORMS[norm](norm_epsilon, dtype=policy)

    def build(self, input_shape: Shape) -> None:
        self.output_dense = MatrixDense(
            size_of(input_shape),
            kernel_initializer=self.kernel_initializer,
            dtype=self.dtype_policy,
            name="output",
        )
        self.hidden_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.hidden_dim))
        self.norm.build(input_shape)

    def call(self, inputs: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
        is_pre = self.norm_position == "pre"
        hidden = self.hidden_dense(self.norm(inputs) if is_pre else inputs)
        branch = self.output_dense(self.hidden_dropout(hidden))
        x = inputs + self.dropout_layer(branch)
        return x if is_pre else self.norm(x)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "norm": self.norm_kind}
