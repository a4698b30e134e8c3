from typing import NamedTuple, Unpack

import keras
from jaxtyping import Bool, Float, Float32, Int
from keras import ops

from keras_caption.base.arguments import Shape, Tensor
from keras_caption.base.compilation import growing
from keras_caption.layers.sockets import build_once
from keras_caption.layers.transformer_block import BlockKeywords, TransformerBlock


class GrowingCache(NamedTuple):
    """Keys and values of the positions so far, to which each step adds one.

    Attributes:
        keys, values: float `(batch * C, num_heads, positions, key_dim)`.
    """

    keys: Tensor
    values: Tensor


class SharedCache(NamedTuple):
    """A growing cache that C sequences, the hypotheses of a beam, share.

    Each step adds a position of all of them, which is written once. The sequences may
    then change their order, or one may continue as several: that is a new order of
    `ancestors` alone.

    Attributes:
        keys, values: float `(rows, num_heads, positions * C, key_dim)`.
        ancestors: bool `(rows, C, positions * C)`, True for the positions that are a
            sequence's own; `(rows, 1, 0)` if C is 1.
    """

    keys: Tensor
    values: Tensor
    ancestors: Tensor

    def start_beams(self, groups: int, places: int) -> "SharedCache":
        """Returns an empty cache for beams of `places` sequences, `groups` of a row."""
        keys, values = (ops.repeat(x, groups, axis=0) for x in (self.keys, self.values))
        ancestors = ops.zeros((ops.shape(keys)[0], places, 0), "bool")
        return SharedCache(keys, values, growing(ancestors, 2))


# Of a block; as a plain pair, keys and values of a fixed number of positions.
BlockCache = GrowingCache | SharedCache | tuple[Tensor, Tensor]


@keras.saving.register_keras_serializable("keras_caption")
class TransformerDecoderBlock(TransformerBlock):
    """A Transformer decoder block around two attention layers.

        x = LayerNorm(x + Dropout(SelfAttention(x)))
        x = LayerNorm(x + Dropout(CrossAttention(x, memory)))
        x = LayerNorm(x + Dropout(FeedForward(x)))

    or, with `norm_position="pre"`,

        x = x + Dropout(SelfAttention(LayerNorm(x)))
        x = x + Dropout(CrossAttention(LayerNorm(x), memory))
        x = x + Dropout(FeedForward(LayerNorm(x)))

    Several sequences may share one memory, as the five training captions of an image
    and the hypotheses of a beam search do. The batch size of `inputs` is then a
    multiple of the memory's, the sequences of one memory are adjacent, and the memory's
    keys and values are computed once, not once per sequence.

    A sequence is either given as a whole (`call`) or decoded one position at a time:
    `read_memory` computes the memory's keys and values, `empty_cache` makes a cache for
    the sequence's keys and values, and `step` fills it.

    Args:
        self_attention, cross_attention: `keras_caption.layers.MultiHeadAttention`,
            with any sockets filled.
        feedforward_dim: int, size of the hidden layer of the feed-forward part.
        dropout: float, dropout rate of the three residual branches. Defaults to 0.1.
        kernel_initializer: Keras initializer, or its name, of the feed-forward part.
            Defaults to `"glorot_uniform"`.
        norm_position, norm, norm_epsilon, activation, activation_dropout: See
            `TransformerEncoderBlock`.

    Call arguments:
        inputs: float `(batch * C, T, dim)`, C sequences for each memory.
        memory: float `(batch, M, memory_dim)`.
        memory_mask: bool `(batch, M)`, True for valid items. Defaults to `None`, all
            valid.
        return_attention_scores: bool, whether to return the weights of the
            cross-attention too.

    Returns:
        float `(batch * C, T, dim)`; with `return_attention_scores`, a pair of it and
        the weights, float32 `(batch, num_heads, C * T, M)`.

    Reference:
        Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    """

    def __init__(
        self,
        self_attention: keras.layers.Layer,
        cross_attention: keras.layers.Layer,
        feedforward_dim: int,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        **kwargs: Unpack[BlockKeywords],
    ):
        super().__init__(feedforward_dim, dropout, kernel_initializer, **kwargs)
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.self_norm = self.make_norm()
        self.cross_norm = self.make_norm()
        self.self_dropout = self.make_dropout()
        self.cross_dropout = self.make_dropout()
        self.feedforward = self.make_feedforward()

    def build(self, inputs_shape: Shape, memory_shape: Shape) -> None:
        build_once(self.self_attention, inputs_shape)
        self.self_norm.build(inputs_shape)
        build_once(self.cross_attention, inputs_shape, memory_shape)
        self.cross_norm.build(inputs_shape)
        self.feedforward.build(inputs_shape)

    def call(
        self,
        inputs: Float[Tensor, "batch*C T dim"],
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        return_attention_scores: bool = False,
    ) -> (
        Float[Tensor, "batch*C T dim"]
        | tuple[
            Float[Tensor, "batch*C T dim"], Float32[Tensor, "batch num_heads C*T M"]
        ]
    ):
        positions = ops.arange(ops.shape(inputs)[1])
        causal = ops.expand_dims(positions, 1) >= positions  # (T, T)
        attended = self.self_attention(
            self.before(self.self_norm, inputs),
            attention_mask=ops.expand_dims(causal, 0),
        )
        items = self.read_memory(memory, memory_mask)
        x, scores = self._after_self_attention(inputs, attended, items)
        return (x, scores) if return_attention_scores else x

    def read_memory(
        self,
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Computes keys, values and mask for the cross-attention; see `call`."""
        keys, values = self.cross_attention.project(memory, mask=memory_mask)
        if memory_mask is not None:
            memory_mask = ops.expand_dims(memory_mask, 1)
        return self.cross_attention.items(keys, values, memory_mask)

    def empty_cache(self, batch_size: int, length: int | None = None) -> BlockCache:
        """Makes a cache of keys and values.

        Positions are stored in reverse: the newest one is the first.

        Args:
            batch_size: int, number of sequences.
            length: int, number of positions that the cache has room for; or `None`, in
                graphs where shapes may change: each `step` adds a position.
        """
        attention = self.self_attention
        shape = (batch_size, attention.num_heads, length or 0, attention.key_dim)
        keys, values = (ops.zeros(shape, self.compute_dtype) for _ in range(2))
        if length is not None:
            return keys, values
        cache = GrowingCache(growing(keys, 2), growing(values, 2))
        if not attention.is_per_item:
            return cache
        return SharedCache(*cache, ops.zeros((batch_size, 1, 0), "bool"))

    def step(
        self,
        inputs: Float[Tensor, "batch*C 1 dim"],
        items: tuple[Tensor, Tensor, Tensor | None],
        cache: BlockCache,
        index: Int[Tensor, ""],
    ) -> tuple[Float[Tensor, "batch*C 1 dim"], BlockCache]:
        """Computes the next position of every sequence.

        Args:
            inputs: float `(batch * C, 1, dim)`, position `index` of the sequences.
            items: Keys, values and mask, from `read_memory`.
            cache: The cache, from `empty_cache` or the previous step.
            index: int scalar.

        Returns:
            The output, float `(batch * C, 1, dim)`, and the cache with this position.
        """
        attention = self.self_attention
        read, past = self.before(self.self_norm, inputs), None
        sequences = cache.ancestors.shape[1] if isinstance(cache, SharedCache) else 1
        read = ops.reshape(read, (-1, sequences, read.shape[-1]))
        # The newest position comes first. Attention does not depend on the order of
        # keys. Writing to position `index` copies the cache in TensorFlow too, and is
        # slower.
        grows = isinstance(cache, GrowingCache | SharedCache)
        earlier = [x if grows else x[:, :, :-1] for x in cache[:2]]
        both = zip(attention.project(read), earlier, strict=True)
        keys, values = (ops.concatenate(pair, axis=2) for pair in both)
        if isinstance(cache, SharedCache) and sequences > 1:
            places = ops.arange(sequences)
            own = ops.expand_dims(places, 1) == places  # of the new positions
            own = ops.broadcast_to(own, (ops.shape(read)[0], *own.shape))
            past = ops.concatenate([own, cache.ancestors], axis=2)
            cache = SharedCache(keys, values, past)
        elif isinstance(cache, GrowingCache | SharedCache):
            cache = cache._replace(keys=keys, values=values)
        else:
            cache = keys, values
            positions = ops.arange(ops.shape(keys)[2])
            # In reverse order, the first index + 1 places are filled.
            past = ops.reshape(positions <= index, (1, 1, -1))
        keys, values, mask = attention.items(keys, values, past)
        attended = attention.attend(read, keys, values, mask=mask)
        attended = ops.reshape(attended, (-1, 1, attended.shape[-1]))
        x, _ = self._after_self_attention(inputs, attended, items)
        return x, cache

    def _after_self_attention(self, inputs, attended, items):
        """Computes the rest of the block, and the weights of the cross-attention."""
        x = self.after(self.self_norm, inputs + self.self_dropout(attended))
        keys, values, mask = items
        length, dim = ops.shape(x)[1], x.shape[-1]
        # Sequences that share a memory become one row of queries:
        # (batch * C, T, dim) -> (batch, C * T, dim).
        queries = self.before(self.cross_norm, x)
        queries = ops.reshape(queries, (ops.shape(keys)[0], -1, dim))
        attended, scores = self.cross_attention.attend(
            queries, keys, values, mask=mask, return_attention_scores=True
        )
        attended = ops.reshape(attended, (-1, length, dim))
        x = self.after(self.cross_norm, x + self.cross_dropout(attended))
        return self.feedforward(x), scores
