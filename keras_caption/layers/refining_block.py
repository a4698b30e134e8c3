import keras
from keras import ops

from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.multi_head_attention import build_once
from keras_caption.layers.unbiased_layer_normalization import (
    UnbiasedLayerNormalization,
)


@keras.saving.register_keras_serializable("keras_caption")
class RefiningBlock(keras.layers.Layer):
    """A pre-norm block around any self-attention layer, as AoANet refines regions.

        x = x + Dropout(Attention(LayerNorm(x)))
        x = x + Dropout(FeedForward(LayerNorm(x)))     where there is a feed-forward

    The paper's Eq. 7 puts the normalization behind the sum; its released code has it
    as here.

    Args:
        attention: A `keras_caption.layers.MultiHeadAttention`, sockets filled as
            wished; with an `AttentionOnAttention` gate in AoANet.
        feedforward_dim: Size of the feed-forward layer between its two parts, or
            `None`, as in AoANet, for no feed-forward.
        dropout: Dropout rate of the branches.

    Call arguments:
        inputs: `(batch, N, dim)`.
        mask: Optional bool `(batch, N)`, True where an item is real.
        boxes: float `(batch, N, 4)`, where the attention layer asks for them.

    Returns:
        `(batch, N, dim)`.

    Reference:
        Huang et al., ICCV 2019, section 3.2.1, Eq. 7; without AoA, section 4.4.
    """

    def __init__(self, attention, feedforward_dim=None, dropout=0.1, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.attention = attention
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.attention_norm = UnbiasedLayerNormalization(dtype=policy)
        self.attention_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.feedforward = None

    def build(self, inputs_shape):
        build_once(self.attention, inputs_shape)
        self.attention_norm.build(inputs_shape)
        if self.feedforward_dim:
            policy, dim = self.dtype_policy, inputs_shape[-1]
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

    def call(self, inputs, mask=None, boxes=None):
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

    def get_config(self):
        return {
            **super().get_config(),
            "attention": keras.saving.serialize_keras_object(self.attention),
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))
