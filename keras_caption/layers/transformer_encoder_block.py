import keras
from keras import ops

from keras_caption.layers.feed_forward import FeedForward
from keras_caption.layers.multi_head_attention import build_once


@keras.saving.register_keras_serializable("keras_caption")
class TransformerEncoderBlock(keras.layers.Layer):
    """A post-norm Transformer encoder block around any self-attention layer.

        x = LayerNorm(x + Dropout(Attention(x)))
        x = LayerNorm(x + Dropout(FeedForward(x)))

    Args:
        attention: A `keras_caption.layers.MultiHeadAttention`, sockets filled as
            wished.
        feedforward_dim: Size of the feed-forward layer between its two parts.
        dropout: Dropout rate of both branches.

    Call arguments:
        inputs: `(batch, N, dim)`.
        mask: Optional bool `(batch, N)`, True where an item is real.
        boxes: float `(batch, N, 4)`, where the attention layer asks for them.
        return_attention_scores: Whether to return the attention weights too.

    Returns:
        `(batch, N, dim)`, or a pair of it and `(batch, num_heads, N, N)`.

    Reference:
        Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    """

    def __init__(self, attention, feedforward_dim, dropout=0.1, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.attention = attention
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.attention_norm = keras.layers.LayerNormalization(dtype=policy)
        self.attention_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.feedforward = FeedForward(feedforward_dim, dropout, dtype=policy)

    def build(self, inputs_shape):
        build_once(self.attention, inputs_shape)
        self.attention_norm.build(inputs_shape)
        self.feedforward.build(inputs_shape)

    def call(self, inputs, mask=None, boxes=None, return_attention_scores=False):
        inputs = ops.cast(inputs, self.compute_dtype)
        attended, scores = self.attention(
            inputs, query_mask=mask, boxes=boxes, return_attention_scores=True
        )
        x = self.attention_norm(inputs + self.attention_dropout(attended))
        x = self.feedforward(x)
        return (x, scores) if return_attention_scores else x

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "attention": serialize(self.attention),
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))
