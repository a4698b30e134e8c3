from typing import Any, Self

import keras
from keras import ops

from keras_caption.arguments import Shape, Tensor
from keras_caption.layers.feed_forward import FeedForward
from keras_caption.layers.sockets import build_once


@keras.saving.register_keras_serializable("keras_caption")
class TransformerEncoderBlock(keras.layers.Layer):
    """A post-norm Transformer encoder block around a self-attention layer.

        x = LayerNorm(x + Dropout(Attention(x)))
        x = LayerNorm(x + Dropout(FeedForward(x)))

    Args:
        attention: `keras_caption.layers.MultiHeadAttention`, with any sockets filled.
        feedforward_dim: int, size of the hidden layer of the feed-forward part.
        dropout: float, dropout rate of both residual branches. Defaults to 0.1.
        kernel_initializer: Keras initializer, or its name, of the feed-forward part.
            Defaults to `"glorot_uniform"`.

    Call arguments:
        inputs: float `(batch, N, dim)`.
        mask: bool `(batch, N)`, True for valid items. Defaults to `None`, all valid.
        boxes: float `(batch, N, 4)`, for an attention layer with a bias.
        return_attention_scores: bool, whether to return the attention weights too.

    Returns:
        float `(batch, N, dim)`; with `return_attention_scores`, a pair of it and the
        weights, float32 `(batch, num_heads, N, N)`.

    Reference:
        Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feedforward_dim: int,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        **kwargs: Any,
    ):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.attention = attention
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.kernel_initializer = kernel_initializer
        policy = self.dtype_policy
        self.attention_norm = keras.layers.LayerNormalization(dtype=policy)
        self.attention_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.feedforward = FeedForward(
            feedforward_dim, dropout, kernel_initializer, dtype=policy
        )

    def build(self, inputs_shape: Shape) -> None:
        build_once(self.attention, inputs_shape)
        self.attention_norm.build(inputs_shape)
        self.feedforward.build(inputs_shape)

    def call(
        self,
        inputs: Tensor,
        mask: Tensor | None = None,
        boxes: Tensor | None = None,
        return_attention_scores: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        inputs = ops.cast(inputs, self.compute_dtype)
        attended, scores = self.attention(
            inputs, query_mask=mask, boxes=boxes, return_attention_scores=True
        )
        x = self.attention_norm(inputs + self.attention_dropout(attended))
        x = self.feedforward(x)
        return (x, scores) if return_attention_scores else x

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "attention": serialize(self.attention),
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
            "kernel_initializer": serialize(self.kernel_initializer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**keras.saving.deserialize_keras_object(config))
