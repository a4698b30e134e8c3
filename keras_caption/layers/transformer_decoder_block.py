import keras
from keras import ops

from keras_caption.layers.feed_forward import FeedForward
from keras_caption.layers.multi_head_attention import build_once


@keras.saving.register_keras_serializable("keras_caption")
class TransformerDecoderBlock(keras.layers.Layer):
    """A post-norm Transformer decoder block around any two attention layers.

        x = LayerNorm(x + Dropout(SelfAttention(x)))
        x = LayerNorm(x + Dropout(CrossAttention(x, memory)))
        x = LayerNorm(x + Dropout(FeedForward(x)))

    Several sequences may share one memory, as five training captions share an
    image and the beams of a search do: `inputs` then has a multiple of the
    memory's batch size, the sequences of one memory next to each other, and the
    memory's keys and values are computed once, not once per sequence.

    A sequence is either given whole (`call`) or grown a position at a time:
    `start` computes the memory's keys and values and an empty cache of the
    sequence's own, `step` fills the cache.

    Args:
        self_attention, cross_attention: `keras_caption.layers.MultiHeadAttention`
            layers, sockets filled as wished.
        feedforward_dim: Size of the feed-forward layer between its two parts.
        dropout: Dropout rate of the three branches.

    Call arguments:
        inputs: `(batch * C, T, dim)`, C sequences for each memory.
        memory: `(batch, M, memory_dim)`.
        memory_mask: Optional bool `(batch, M)`, True where an item is real.
        return_attention_scores: Whether to return the weights of the
            cross-attention too.

    Returns:
        `(batch * C, T, dim)`, or a pair of it and `(batch, num_heads, C * T, M)`.

    Reference:
        Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    """

    def __init__(
        self, self_attention, cross_attention, feedforward_dim, dropout=0.1, **kwargs
    ):
        super().__init__(**kwargs)
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.self_norm = keras.layers.LayerNormalization(dtype=policy)
        self.cross_norm = keras.layers.LayerNormalization(dtype=policy)
        self.self_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.cross_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.feedforward = FeedForward(feedforward_dim, dropout, dtype=policy)

    def build(self, inputs_shape, memory_shape):
        build_once(self.self_attention, inputs_shape)
        self.self_norm.build(inputs_shape)
        build_once(self.cross_attention, inputs_shape, memory_shape)
        self.cross_norm.build(inputs_shape)
        self.feedforward.build(inputs_shape)

    def call(self, inputs, memory, memory_mask=None, return_attention_scores=False):
        positions = ops.arange(ops.shape(inputs)[1])
        causal = ops.expand_dims(positions, 1) >= positions
        attended = self.self_attention(
            inputs, attention_mask=ops.expand_dims(causal, 0)
        )
        items = self.read_memory(memory, memory_mask)
        x, scores = self._after_self_attention(inputs, attended, items)
        return (x, scores) if return_attention_scores else x

    def read_memory(self, memory, memory_mask=None):
        """Keys, values and mask of what the cross-attention attends to."""
        keys, values = self.cross_attention.project(memory, mask=memory_mask)
        if memory_mask is not None:
            memory_mask = ops.expand_dims(memory_mask, 1)
        return self.cross_attention.items(keys, values, memory_mask)

    def empty_cache(self, batch_size, length):
        """Keys and values of no positions yet, with room for `length`."""
        attention = self.self_attention
        shape = (batch_size, attention.num_heads, length, attention.key_dim)
        return tuple(ops.zeros(shape, self.compute_dtype) for _ in range(2))

    def step(self, inputs, items, cache, index):
        """The next position of every sequence.

        Args:
            inputs: `(batch * C, 1, dim)`, position `index` of the sequences.
            items: What `read_memory` returned.
            cache: What `empty_cache`, or the last step, returned.
            index: int scalar.

        Returns:
            The output `(batch * C, 1, dim)`, and the cache.
        """
        attention = self.self_attention
        positions = ops.arange(ops.shape(cache[0])[2])
        here = ops.expand_dims(positions == index, 1)
        new = attention.project(inputs)
        cache = tuple(ops.where(here, n, c) for n, c in zip(new, cache, strict=True))
        past = ops.reshape(positions <= index, (1, 1, -1))
        keys, values, mask = attention.items(*cache, past)
        attended = attention.attend(inputs, keys, values, mask=mask)
        x, _ = self._after_self_attention(inputs, attended, items)
        return x, cache

    def _after_self_attention(self, inputs, attended, items):
        x = self.self_norm(inputs + self.self_dropout(attended))
        keys, values, mask = items
        length, dim = ops.shape(x)[1], x.shape[-1]
        # The sequences of one memory become one long row of queries.
        queries = ops.reshape(x, (ops.shape(keys)[0], -1, dim))
        attended, scores = self.cross_attention.attend(
            queries, keys, values, mask=mask, return_attention_scores=True
        )
        attended = ops.reshape(attended, (-1, length, dim))
        x = self.cross_norm(x + self.cross_dropout(attended))
        return self.feedforward(x), scores

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "self_attention": serialize(self.self_attention),
            "cross_attention": serialize(self.cross_attention),
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))
