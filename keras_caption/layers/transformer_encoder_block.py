from typing import Unpack

import keras
from jaxtyping import Bool, Float, Float32
from keras import ops

from keras_caption.base.arguments import Shape, Tensor
from keras_caption.layers.known_output import KnownOutput
from keras_caption.layers.sockets import build_once
from keras_caption.layers.transformer_block import BlockKeywords, TransformerBlock


@keras.saving.register_keras_serializable("keras_caption")
class TransformerEncoderBlock(KnownOutput, TransformerBlock):
    """A Transformer encoder block around a self-attention layer.

        x = LayerNorm(x + Dropout(Attention(x)))
        x = LayerNorm(x + Dropout(FeedForward(x)))

    or, with `norm_position="pre"`,

        x = x + Dropout(Attention(LayerNorm(x)))
        x = x + Dropout(FeedForward(LayerNorm(x)))

    Args:
        attention: `keras_caption.layers.MultiHeadAttention`, with any sockets filled.
        feedforward_dim: int, size of the hidden layer of the feed-forward part.
        dropout: float, dropout rate of both residual branches. Defaults to 0.1.
        kernel_initializer: Keras initializer, or its name, of the feed-forward part.
            Defaults to `"glorot_uniform"`.
        norm_position: str, where branches are normalized, `"post"` or `"pre"`. Defaults
            to `"post"`. A model normalizes the output of the last pre-norm block.
        norm: str, kind of `LayerNorm`: `"layer"`, or `"unbiased"`, which is an
            `UnbiasedLayerNormalization`. Defaults to `"layer"`.
        norm_epsilon: float, added to the variance by `"layer"`. Defaults to 1e-3.
        activation: str, activation of the feed-forward part: `"relu"`, `"swish"` or
            `"gelu"`. Defaults to `"relu"`.
        activation_dropout: float, dropout rate after the activation. Defaults to 0.

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
        **kwargs: Unpack[BlockKeywords],
    ):
        super().__init__(feedforward_dim, dropout, kernel_initializer, **kwargs)
        self.autocast = False  # boxes stay in float32; `call` casts the other inputs
        self.supports_masking = True
        self.attention = attention
        self.attention_norm = self.make_norm()
        self.attention_dropout = self.make_dropout()
        self.feedforward = self.make_feedforward()

    def build(self, inputs_shape: Shape) -> None:
        build_once(self.attention, inputs_shape)
        self.attention_norm.build(inputs_shape)
        self.feedforward.build(inputs_shape)

    def call(
        self,
        inputs: Float[Tensor, "batch N dim"],
        mask: Bool[Tensor, "batch N"] | None = None,
        boxes: Float[Tensor, "batch N 4"] | None = None,
        return_attention_scores: bool = False,
    ) -> (
        Float[Tensor, "batch N dim"]
        | tuple[Float[Tensor, "batch N dim"], Float32[Tensor, "batch num_heads N N"]]
    ):
        inputs = ops.cast(inputs, self.compute_dtype)
        attended, scores = self.attention(
            self.before(self.attention_norm, inputs),
            query_mask=mask,
            boxes=boxes,
            return_attention_scores=True,
        )
        x = inputs + self.attention_dropout(attended)
        x = self.feedforward(self.after(self.attention_norm, x))
        return (x, scores) if return_attention_scores else x
