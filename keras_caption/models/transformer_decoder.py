from collections.abc import Iterable
from typing import Any, Unpack

import keras
from jaxtyping import Bool, Float, Float32, Int
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor
from keras_caption.layers import (
    MatrixDense,
    SinePositionEncoding,
    TransformerDecoderBlock,
    WordEmbedding,
)
from keras_caption.layers.multi_head_attention import build_once
from keras_caption.models.token_decoder import Decoded, TokenDecoder


@keras.saving.register_keras_serializable("keras_caption")
class TransformerDecoder(TokenDecoder):
    """A Transformer that generates a caption, attending to any memory.

    Token embeddings (scaled by `sqrt(model_dim)`) plus sinusoidal positions go
    through Transformer decoder blocks to a linear layer over the vocabulary.

    A call reads whole captions. A pair of methods generates captions:
    `start(memory) -> state` and `step(tokens, state, index) -> (logits, state)`.
    A state has two parts: `"memory"`, which does not change, depends on images and
    weights; `"cache"` has one row per caption. Beam search repeats and reorders the
    cache only; of a `SharedCache`, it reorders the ancestors alone.

    Args:
        vocabulary_size: int, number of tokens, special ones included.
        model_dim: int, size of embeddings and hidden states.
        blocks: Iterable of `keras_caption.layers.TransformerDecoderBlock`, from the
            first to the last.
        dropout: float, dropout rate of embeddings.
        embedding: `keras_caption.layers.WordEmbedding` whose table tokens and softmax
            share; the encoder may share it too. If omitted, the decoder makes a table
            for tokens and another one for the softmax.
        logit_bias: bool, whether the softmax has a bias if it shares the table of
            `embedding`. A softmax with a separate table always has a bias.
        final_norm: Keras layer that normalizes the output of the last block, which
            pre-norm blocks need, or `None`.

    Call arguments:
        tokens: int `(batch * C, T)`, C captions for each memory, from BOS on.
        memory: `(batch, M, memory_dim)`.
        memory_mask: Optional bool `(batch, M)`, True where an item is valid.
        return_attention_scores: bool, whether to return the weights of the last block's
            cross-attention too. The weight of an area is shared evenly by its items.

    Returns:
        Logits, float32 `(batch * C, T, vocabulary_size)`: those at position t are of
        the token after tokens 0 to t. With `return_attention_scores`, a pair: logits
        and attention weights, `(batch, num_heads, C * T, M)`.
    """

    can_grow = True

    def __init__(
        self,
        vocabulary_size: int,
        model_dim: int,
        blocks: Iterable[TransformerDecoderBlock],
        dropout: float = 0.1,
        embedding: WordEmbedding | None = None,
        logit_bias: bool = False,
        final_norm: keras.layers.Layer | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.model_dim = model_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.shared = embedding is not None
        self.embedding = embedding or WordEmbedding(
            vocabulary_size, model_dim, dtype=policy
        )
        self.positions = SinePositionEncoding(dtype=policy)
        self.embedding_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.blocks = list(blocks)
        self.logit_bias = logit_bias
        self.final_norm = final_norm
        self.output_dense = None
        if not self.shared:
            self.output_dense = MatrixDense(vocabulary_size, dtype=policy, name="words")

    def build(self, tokens_shape, memory_shape):
        hidden_shape = (*tokens_shape, self.model_dim)
        build_once(self.embedding, tokens_shape)
        for block in self.blocks:
            build_once(block, hidden_shape, memory_shape)
        build_once(self.final_norm, hidden_shape)
        build_once(self.output_dense, hidden_shape)
        if self.shared and self.logit_bias:
            self.bias = self.add_weight(
                (self.vocabulary_size,), initializer="zeros", name="bias"
            )

    def call(
        self,
        tokens: Int[Tensor, "batch*C T"],
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        return_attention_scores: bool = False,
    ) -> Decoded:
        x = self._place(self.embedding(tokens), 0)
        for block in self.blocks:
            x, scores = block(
                x, memory, memory_mask=memory_mask, return_attention_scores=True
            )
        logits = self._logits(x, self._output_table())
        if not return_attention_scores:
            return logits
        attention = self.blocks[-1].cross_attention
        return logits, attention.item_weights(scores, ops.shape(memory)[1])

    def start(
        self,
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        length: int | None = 20,
    ) -> dict[str, Any]:
        """The state before the first token.

        Args:
            memory: `(batch, M, memory_dim)`.
            memory_mask: Optional bool `(batch, M)`.
            length: int, greatest number of tokens; or `None`, where the shapes of the
                cache may change from step to step: it has no limit.
        """
        batch_size = ops.shape(memory)[0]
        items = [b.read_memory(memory, memory_mask) for b in self.blocks]
        return {
            "memory": {"items": items, "output_table": self._output_table()},
            "cache": [b.empty_cache(batch_size, length) for b in self.blocks],
        }

    def step(
        self,
        tokens: Int[Tensor, " batch*C"],
        state: dict[str, Any],
        index: Int[Tensor, ""],
    ) -> tuple[Float32[Tensor, "batch*C vocabulary_size"], dict[str, Any]]:
        """Reads one more token of every caption.

        Args:
            tokens: int `(batch * C,)`, the tokens at position `index`.
            state: dict, as `start` or the last `step` returned it.
            index: int scalar.

        Returns:
            Logits of the next token, float32 `(batch * C, vocabulary_size)`, and
            the state.
        """
        x = self._place(self.embedding.look_up(ops.expand_dims(tokens, 1)), index)
        memory, cache = state["memory"], []
        for block, items, block_cache in zip(
            self.blocks, memory["items"], state["cache"], strict=True
        ):
            x, block_cache = block.step(x, items, block_cache, index)
            cache.append(block_cache)
        # (batch * C, 1, model_dim) to (batch * C, model_dim)
        logits = self._logits(ops.squeeze(x, 1), memory["output_table"])
        return logits, {**state, "cache": cache}

    def _output_table(self):
        """The table that the softmax shares with the embeddings, or `None`.

        It is part of the memory, so that `step` does not cast it again for each token.
        """
        return self.embedding.output_table() if self.shared else None

    def _logits(self, x, output_table):
        if self.final_norm is not None:
            x = self.final_norm(x)
        # The softmax over the vocabulary needs float32 under mixed precision.
        if not self.shared:
            return ops.cast(self.output_dense(x), "float32")
        logits = ops.cast(ops.matmul(x, output_table), "float32")
        return logits + ops.cast(self.bias, "float32") if self.logit_bias else logits

    def _place(self, x, index):
        """Adds positions, from `index` on, to embedded tokens."""
        x = x + self.positions(x, start_index=index)
        return self.embedding_dropout(x)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return config if self.shared else {**config, "embedding": None}
