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
class CoAttentionBlock(KnownOutput):
    """A post-norm block of MCAN around self-attention and guided attention.

        x = Norm(x + Dropout(SelfAttention(x)))
        x = Norm(x + Dropout(GuidedAttention(x, memory)))      (optional)
        x = Norm(x + Dropout(FeedForward(x)))

    Without guided attention it is MCAN's block over words (SA), with it MCAN's block
    over regions (SGA). As in the released code, `Norm` is `UnbiasedLayerNormalization`,
    and the feed-forward part has dropout after its ReLU too.

    Args:
        attention: `keras_caption.layers.MultiHeadAttention`, with any sockets filled.
        feedforward_dim: int, size of the hidden layer of the feed-forward part.
        guided_attention: `keras_caption.layers.MultiHeadAttention`, from the inputs to
            a memory. Defaults to `None`, no guided attention.
        dropout: float, dropout rate of all residual branches. Defaults to 0.1.
        kernel_initializer: Keras initializer, or its name, of the feed-forward part.
            Defaults to `"glorot_uniform"`.

    Call arguments:
        inputs: float `(batch, N, dim)`.
        memory: float `(batch, M, memory_dim)`, for guided attention.
        mask: bool `(batch, N)`, True for valid items. Defaults to `None`, all valid.
        memory_mask: bool `(batch, M)`, as `mask`.
        boxes: float `(batch, N, 4)`, for a self-attention layer with a bias.
        return_attention_scores: bool, whether to return attention weights too.

    Returns:
        float `(batch, N, dim)`; with `return_attention_scores`, a list of it, the
        weights of the self-attention, float32 `(batch, num_heads, N, N')`, and those
        of the guided attention, if any, float32 `(batch, num_heads, N, M)`.

    Reference:
        Yu et al., "Deep Modular Co-Attention Networks for Visual Question
        Answering", CVPR 2019.
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feedforward_dim: int,
        guided_attention: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        **kwargs: Unpack[KerasOptions],
    ):
        # No autocast: boxes stay in float32; `call` casts the other inputs.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.attention = attention
        self.feedforward_dim = feedforward_dim
        self.guided_attention = guided_attention
        self.dropout = dropout
        self.kernel_initializer = kernel_initializer
        policy = self.dtype_policy
        self.attention_norm = UnbiasedLayerNormalization(dtype=policy)
        if guided_attention is not None:
            self.guided_norm = UnbiasedLayerNormalization(dtype=policy)
        self.feedforward_norm = UnbiasedLayerNormalization(dtype=policy)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)
        self.hidden_dense = MatrixDense(
            feedforward_dim,
            "relu",
            kernel_initializer=kernel_initializer,
            dtype=policy,
            name="hidden",
        )

    def build(self, inputs_shape: Shape, memory_shape: Shape | None = None) -> None:
        build_once(self.attention, inputs_shape)
        self.attention_norm.build(inputs_shape)
        if self.guided_attention is not None:
            memory_shape = memory_shape or inputs_shape
            build_once(self.guided_attention, inputs_shape, memory_shape)
            self.guided_norm.build(inputs_shape)
        self.hidden_dense.build(inputs_shape)
        self.output_dense = MatrixDense(
            size_of(inputs_shape),
            kernel_initializer=self.kernel_initializer,
            dtype=self.dtype_policy,
            name="output",
        )
        self.output_dense.build((*inputs_shape[:-1], self.feedforward_dim))
        self.feedforward_norm.build(inputs_shape)

    def call(
        self,
        inputs: Float[Tensor, "batch N dim"],
        memory: Float[Tensor, "batch M memory_dim"] | None = None,
        mask: Bool[Tensor, "batch N"] | None = None,
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        boxes: Float[Tensor, "batch N 4"] | None = None,
        return_attention_scores: bool = False,
    ) -> Float[Tensor, "batch N dim"] | list[Tensor]:
        x = ops.cast(inputs, self.compute_dtype)
        branch, scores = self.attention(
            x, query_mask=mask, boxes=boxes, return_attention_scores=True
        )
        x = self.attention_norm(x + self.dropout_layer(branch))
        scores = [scores]
        if self.guided_attention is not None:
            branch, guided = self.guided_attention(
                x,
                ops.cast(memory, self.compute_dtype),
                query_mask=mask,
                value_mask=memory_mask,
                return_attention_scores=True,
            )
            x = self.guided_norm(x + self.dropout_layer(branch))
            scores.append(guided)
        branch = self.output_dense(self.dropout_layer(self.hidden_dense(x)))
        x = self.feedforward_norm(x + self.dropout_layer(branch))
        return [x, *scores] if return_attention_scores else x
