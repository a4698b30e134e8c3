import keras
import keras_hub
from keras import ops

from keras_caption.layers import MatrixDense, WordEmbedding
from keras_caption.layers.multi_head_attention import build_once


@keras.saving.register_keras_serializable("keras_caption")
class TransformerDecoder(keras.layers.Layer):
    """A Transformer that words a caption, over any memory.

    Word embeddings (scaled by `sqrt(model_dim)`) plus sinusoidal positions go
    through post-norm Transformer decoder blocks to a linear layer over the
    vocabulary.

    Given a whole caption it is called; growing one it is a pair of functions,
    `start(memory) -> state` and `step(tokens, state, index) -> (logits, state)`.
    A state has two parts: `"memory"`, one row per image, and `"cache"`, one row
    per caption; a search that branches repeats and reorders only the latter.

    Args:
        vocabulary_size: Number of words, special tokens included.
        model_dim: Size of embeddings and hidden states.
        blocks: Iterable of `keras_caption.layers.TransformerDecoderBlock`, the first
            one first.
        dropout: Dropout rate of embeddings.
        embedding: `keras_caption.layers.WordEmbedding`, whose table is that of the
            tokens and of the softmax, as one of the encoder's may be. If omitted,
            both are separate tables of the decoder's own.

    Call arguments:
        tokens: int `(batch * C, T)`, C captions for each memory, from BOS on.
        memory: `(batch, M, memory_dim)`.
        memory_mask: Optional bool `(batch, M)`, True where an item is real.
        return_attention_scores: Whether to return the weights of the last block's
            cross-attention too; an area's are shared evenly by its items.

    Returns:
        Logits, float32 `(batch * C, T, vocabulary_size)`: at position t, of the
        word after tokens 0 to t. With `return_attention_scores`, a pair of them
        and `(batch, num_heads, C * T, M)`.
    """

    def __init__(
        self,
        vocabulary_size,
        model_dim,
        blocks,
        dropout=0.1,
        embedding=None,
        **kwargs,
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
        self.positions = keras_hub.layers.SinePositionEncoding(dtype=policy)
        self.embedding_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.blocks = list(blocks)
        self.output_dense = None
        if not self.shared:
            self.output_dense = MatrixDense(vocabulary_size, dtype=policy, name="words")

    def build(self, tokens_shape, memory_shape):
        hidden_shape = (*tokens_shape, self.model_dim)
        build_once(self.embedding, tokens_shape)
        for block in self.blocks:
            build_once(block, hidden_shape, memory_shape)
        build_once(self.output_dense, hidden_shape)

    def call(self, tokens, memory, memory_mask=None, return_attention_scores=False):
        x = self._place(self.embedding(tokens), 0)
        for block in self.blocks:
            x, scores = block(
                x, memory, memory_mask=memory_mask, return_attention_scores=True
            )
        logits = self._logits(x)
        if not return_attention_scores:
            return logits
        attention = self.blocks[-1].cross_attention
        return logits, attention.item_weights(scores, ops.shape(memory)[1])

    def start(self, memory, memory_mask=None, length=20):
        """The state before the first word.

        Args:
            memory: `(batch, M, memory_dim)`.
            memory_mask: Optional bool `(batch, M)`.
            length: Room for so many positions.
        """
        batch_size = ops.shape(memory)[0]
        return {
            "memory": [b.read_memory(memory, memory_mask) for b in self.blocks],
            "cache": [b.empty_cache(batch_size, length) for b in self.blocks],
        }

    def step(self, tokens, state, index):
        """One more word for every caption.

        Args:
            tokens: int `(batch * C,)`, the word at position `index`.
            state: What `start` or the last `step` returned.
            index: int scalar.

        Returns:
            Logits of the next word, float32 `(batch * C, vocabulary_size)`, and
            the state.
        """
        x = self._place(self.embedding.look_up(ops.expand_dims(tokens, 1)), index)
        cache = []
        for block, items, own in zip(
            self.blocks, state["memory"], state["cache"], strict=True
        ):
            x, own = block.step(x, items, own, index)
            cache.append(own)
        return self._logits(ops.squeeze(x, 1)), {**state, "cache": cache}

    def _logits(self, x):
        logits = self.embedding.score(x) if self.shared else self.output_dense(x)
        return ops.cast(logits, "float32")

    def _place(self, x, index):
        """Embedded words with their positions, the first of which is `index`."""
        x = x + self.positions(x, start_index=index)
        return self.embedding_dropout(x)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "model_dim": self.model_dim,
            "blocks": keras.saving.serialize_keras_object(self.blocks),
            "dropout": self.dropout,
            "embedding": keras.saving.serialize_keras_object(
                self.embedding if self.shared else None
            ),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))
