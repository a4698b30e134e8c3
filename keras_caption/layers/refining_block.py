from typing import Unpack

import keras
from jaxtyping import Bool, Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.layers.known_output import KnownOutput
from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.sockets import build_once, size_of
from keras_caption.layers.unbiased_layer_normalization import (
    UnbiasedLayerNormalization,
)


@keras.saving.register_keras_serializable("keras_caption")
class RefiningBlock(KnownOutput):
    """A pre-norm block around a self-attention layer, as AoANet refines regions.

        x = x + Dropout(Attention(LayerNorm(x)))
        x = x + Dropout(FeedForward(LayerNorm(x)))     (optional)

    The paper's Eq. 7 normalizes after the sum; the released code, as here, before the
    attention.

    Args:
        attention: `keras_caption.layers.MultiHeadAttention`, with any sockets filled;
            in AoANet, with an `AttentionOnAttention` gate.
        feedforward_dim: int, size of the hidden layer of the feed-forward part.
            Defaults to `None`, no feed-forward part, as in AoANet.
        dropout: float, dropout rate of the residual branches. Defaults to 0.1.

    Call arguments:
        inputs: float `(batch, N, dim)`.
        mask: bool `(batch, N)`, True for valid items. Defaults to `None`, all valid.
        boxes: float `(batch, N, 4)`, for an attention layer with a bias.

    Returns:
        float `(batch, N, dim)`.

    Reference:
        Huang et al., ICCV 2019, section 3.2.1, Eq. 7; without AoA, section 4.4.
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feedforward_dim: int | None = None,
        dropout: float = 0.1,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.attention = attention
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.attention_norm = UnbiasedLayerNormalization(dtype=policy)
        self.attention_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.feedforward: list[keras.Layer] | None = None

    def build(self, inputs_shape: Shape) -> None:
        build_once(self.attention, inputs_shape)
        self.attention_norm.build(inputs_shape)
        if self.feedforward_dim:
            policy, dim = self.dtype_policy, size_of(inputs_shape)
            self.feedforward = [
                UnbiasedLayerNormalization(dtype=policy),
                MatrixDense(self.feedforward_dim, "relu", dtype=policy, name="hidden"),
                keras.layers.Dropout(self.dropout, dtype=policy),
                MatrixDense(dim, dtype=policy, name="output"),
                keras.layers.Dropout(self.dropout, dtype=policy),
            ]
            shape = inputs_shape
            for layer in self.feedforward:
                layer.build(shape)
                shape = layer.compute_output_shape(shape)

    def call(
        self,
        inputs: Float[Tensor, "batch N dim"],
        mask: Bool[Tensor, "batch N"] | None = None,
        boxes: Float[Tensor, "batch N 4"] | None = None,
    ) -> Float[Tensor, "batch N dim"]:
        inputs = ops.cast(inputs, self.compute_dtype)
        normalized = self.attention_norm(inputs)
        attended = self.attention(normalized, query_mask=mask, boxes=boxes)
        x = inputs + self.attention_dropout(attended)
        if self.feedforward is None:
            return x
        branch = x
        for layer in self.feedforward:
            branch = layer(branch)
        return x + branch
