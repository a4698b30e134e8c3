from collections.abc import Callable
from typing import Any, Unpack

import keras
from jaxtyping import Bool, Float, Float32, Int
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor
from keras_caption.base.errors import InputError
from keras_caption.layers import (
    AttentionOnAttention,
    MatrixDense,
    MultiHeadAttention,
    UnbiasedLayerNormalization,
    WordEmbedding,
)
from keras_caption.layers.masked_mean import masked_mean
from keras_caption.layers.sockets import build_once, normalize
from keras_caption.models.token_decoder import Decoded, TokenDecoder

CONTEXTS = ("aoa", "linear", "lstm", "lstm_aoa")


@keras.saving.register_keras_serializable("keras_caption")
class AoADecoder(TokenDecoder):
    """An LSTM that generates a caption, attending to a memory with AoA.

    At each token, with a the mean of the memory, c the context vector, h the hidden
    state of the LSTM and m its cell state,

        h, m = LSTM([W_e token; a + c], h, m)             (Eq. 12 and 13)
        v = MultiHeadAttention(LayerNorm(h), memory)
        c = AoA(v, h)                                     (Eq. 14)
        p = softmax(W_p c)                                (Eq. 11)

    Where the paper and its released code differ, the layer follows the code:

    - attention reads the normalized h, and the gate reads h itself;
    - an attention with an additive `score` reads h itself too;
    - embeddings pass a ReLU;
    - a is the mean of the refined regions;
    - dropout is applied to context, embeddings and output when they are read; the
      context in the state has none.

    With `concatenated` and a second LSTM, the layer is the decoder of bottom-up and
    top-down attention (Anderson et al., section 3.2): the first LSTM reads
    `[W_e token; c; a]`, and c has no dropout.

    Args:
        vocabulary_size: int, number of tokens, special ones included.
        model_dim: int, size of h, m and c.
        embedding_dim: int, size of a token's embedding.
        attention: `keras_caption.layers.MultiHeadAttention` with outputs of size
            `model_dim`, in the paper without output projection; or a function that
            returns it. The function is called after the layers before it are made, so
            that random initial weights keep their order.
        context: str, how c is computed from v and h (Table 4): `"aoa"`; `"linear"`, a
            linear layer with ReLU (the ReLU is in the released code, not in section
            4.4); `"lstm"`, a second LSTM; or `"lstm_aoa"`, AoA of v and the second
            LSTM's output, whose training the paper calls unstable.
        dropout: float, dropout rate of embeddings and output.
        concatenated: bool, whether the LSTM reads `[c; a]` in place of c + a. Defaults
            to `False`.
        context_dropout: float, dropout rate of c when the LSTM reads it. Defaults to
            `dropout`, or to 0 if `concatenated`.

    Call arguments:
        tokens: int `(batch * C, T)`, C captions for each memory, from BOS on.
        memory: `(batch, M, memory_dim)`.
        memory_mask: Optional bool `(batch, M)`, True where an item is valid.
        summary: Optional float `(batch, dim)`, a. Defaults to the memory's mean.
        return_attention_scores: bool, whether to return the attention weights too. The
            weight of an area is shared evenly by its items.

    Returns:
        Logits, float32 `(batch * C, T, vocabulary_size)`: those at position t are of
        the token after tokens 0 to t. With `return_attention_scores`, a pair: logits
        and attention weights, `(batch, num_heads, C * T, M)`.

    Raises:
        InputError: If `context` has another value.

    Reference:
        Huang et al., "Attention on Attention for Image Captioning", ICCV 2019,
        section 3.2.2; Anderson et al., "Bottom-Up and Top-Down Attention for Image
        Captioning and Visual Question Answering", CVPR 2018.
    """

    can_grow = True  # in that the state needs no length

    def __init__(
        self,
        vocabulary_size: int,
        model_dim: int,
        embedding_dim: int,
        attention: MultiHeadAttention | Callable[[], MultiHeadAttention],
        context: str = "aoa",
        dropout: float = 0.5,
        concatenated: bool = False,
        context_dropout: float | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        if context not in CONTEXTS:
            names = ", ".join(CONTEXTS)
            raise InputError(f"`context` must be one of {names}. Received: {context!r}")
        self.vocabulary_size = vocabulary_size
        self.model_dim = model_dim
        self.embedding_dim = embedding_dim
        self.context = context
        self.dropout = dropout
        self.concatenated = concatenated
        policy = self.dtype_policy
        self.embedding = WordEmbedding(vocabulary_size, embedding_dim, dtype=policy)
        self.word_dropout = keras.layers.Dropout(dropout, dtype=policy)
        if context_dropout is None:
            context_dropout = 0.0 if concatenated else dropout
        self.context_dropout = keras.layers.Dropout(context_dropout, dtype=policy)
        self.output_dropout = keras.layers.Dropout(dropout, dtype=policy)
        self.cell = keras.layers.LSTMCell(
            model_dim, dtype=policy, name="attention_lstm"
        )
        # Made here, between the LSTMs: initializers take their seeds in the order in
        # which layers are made.
        is_layer = isinstance(attention, keras.layers.Layer)
        layer: Any = attention if is_layer else attention()
        self.query_norm = None
        if layer.score is None:
            self.query_norm = UnbiasedLayerNormalization(dtype=policy)
        self.attention: MultiHeadAttention = layer
        self.gate = self.context_cell = self.context_dense = None
        if "aoa" in context:
            self.gate = AttentionOnAttention(dtype=policy)
        if "lstm" in context:
            self.context_cell = keras.layers.LSTMCell(
                model_dim, dtype=policy, name="context_lstm"
            )
        if context == "linear":
            self.context_dense = MatrixDense(
                model_dim, "relu", dtype=policy, name="context"
            )
        self.output_dense = MatrixDense(vocabulary_size, dtype=policy, name="words")

    def build(self, tokens_shape, memory_shape, summary_shape=None):
        rows, dim = tokens_shape[0], self.model_dim
        hidden, both = (rows, dim), (rows, 2 * dim)
        self.embedding.build(tokens_shape)
        width = self.embedding_dim + (summary_shape or memory_shape)[-1]
        self.cell.build((rows, width + (dim if self.concatenated else 0)))
        build_once(self.query_norm, hidden)
        build_once(self.attention, (rows, 1, dim), memory_shape)
        if self.gate is not None:
            self.gate.build(hidden, hidden)
        if self.context_cell is not None:
            self.context_cell.build(both)
        if self.context_dense is not None:
            self.context_dense.build(both)
        self.output_dense.build(hidden)

    def call(
        self,
        tokens: Int[Tensor, "batch*C T"],
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        summary: Float[Tensor, "batch dim"] | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ) -> Decoded:
        items = self.read_memory(memory, memory_mask, summary)
        first = self._first_state(ops.shape(tokens)[0])
        both = keras.layers.RNN(  # (batch * C, T, 2 * model_dim)
            _Cell(self, items, list(first)),
            return_sequences=True,
            # A seed generator cannot change its state inside JAX's own loop.
            unroll=bool(training and self._is_random)
            and keras.backend.backend() == "jax",
            dtype=self.dtype_policy,
        )(self._activate(self.embedding(tokens)), initial_state=list(first.values()))
        hidden, contexts = ops.split(both, 2, axis=-1)
        logits = self._logits(contexts)
        if not return_attention_scores:
            return logits
        # An RNN cannot return weights beside its outputs: attention is computed again
        # from the hidden states, for all positions at once.
        _, scores = self._attend_to(hidden, items, return_attention_scores=True)
        return logits, self.attention.item_weights(scores, ops.shape(memory)[1])

    @property
    def _is_random(self):
        """Whether a step of the RNN has dropout."""
        return self.context_dropout.rate or self.attention.dropout

    def read_memory(
        self, memory: Any, memory_mask: Any = None, summary: Any = None
    ) -> tuple[Any, ...]:
        """Returns keys, values and mask of the memory, and its mean or `summary`."""
        keys, values = self.attention.project(memory, memory_mask)
        if summary is None:
            summary = masked_mean(memory, memory_mask)
        if memory_mask is not None:
            memory_mask = ops.expand_dims(memory_mask, 1)  # (batch, 1, M)
        return (*self.attention.items(keys, values, memory_mask), summary)

    def start(
        self,
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        summary: Float[Tensor, "batch dim"] | None = None,
        length: int | None = 20,
    ) -> dict[str, Any]:
        """The state before the first token.

        Args:
            memory: `(batch, M, memory_dim)`.
            memory_mask: Optional bool `(batch, M)`.
            summary: Optional float `(batch, dim)`.
            length: Ignored: the state does not grow.
        """
        return {
            "memory": self.read_memory(memory, memory_mask, summary),
            "cache": self._first_state(ops.shape(memory)[0]),
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
            index: int scalar, ignored: the state has no positions.

        Returns:
            Logits of the next token, float32 `(batch * C, vocabulary_size)`, and
            the state.
        """
        embedded = self._activate(self.embedding.look_up(tokens))
        cache = self._read_token(embedded, state["cache"], state["memory"])
        return self._logits(cache["context"]), {**state, "cache": cache}

    def _first_state(self, rows):
        names = ["hidden", "cell", "context"]
        if self.context_cell is not None:
            names += ["context_hidden", "context_cell"]
        zeros = ops.zeros((rows, self.model_dim), self.compute_dtype)
        return dict.fromkeys(names, zeros)

    def _activate(self, embedded):
        return self.word_dropout(ops.relu(embedded))

    def _read_token(self, embedded, state, items):
        """The state after one more token of every caption.

        Args:
            embedded: The tokens' embeddings, `(batch * C, embedding_dim)`.
            state: dict of `(batch * C, model_dim)`.
            items: tuple, as `read_memory` returns it.
        """
        *_, summary = items
        images, dim = ops.shape(summary)[0], self.model_dim
        # The summary of an image is broadcast over its C captions.
        summary = ops.expand_dims(summary, 1)  # (batch, 1, dim)
        fed_back = self.context_dropout(state["context"])
        fed_back = ops.reshape(fed_back, (images, -1, dim))  # (batch, C, dim)
        if self.concatenated:
            shape = (*ops.shape(fed_back)[:2], summary.shape[-1])
            summary = ops.broadcast_to(summary, shape)
            fed_back = ops.concatenate([fed_back, summary], axis=-1)
        else:
            fed_back = fed_back + summary
        fed_back = ops.reshape(fed_back, (-1, fed_back.shape[-1]))
        inputs = ops.concatenate([embedded, fed_back], axis=-1)
        hidden, (_, cell) = self.cell(inputs, [state["hidden"], state["cell"]])
        # (batch, C, dim) to (batch * C, dim)
        attended = ops.reshape(self._attend_to(hidden, items), (-1, dim))
        new = {"hidden": hidden, "cell": cell}
        query = hidden
        if self.context_cell is not None:
            inputs = ops.concatenate([attended, hidden], axis=-1)
            query, (_, context_cell) = self.context_cell(
                inputs, [state["context_hidden"], state["context_cell"]]
            )
            new |= {"context_hidden": query, "context_cell": context_cell}
        if self.gate is not None:
            new["context"] = self.gate(attended, query)
        elif self.context_dense is not None:
            both = ops.concatenate([attended, hidden], axis=-1)
            new["context"] = self.context_dense(both)
        else:
            new["context"] = query
        return new

    def _attend_to(self, hidden, items, return_attention_scores=False):
        """Attends from the hidden states of C captions to the items of their image."""
        keys, values, mask, _ = items
        queries = ops.reshape(  # (batch, C * T, dim)
            normalize(hidden, self.query_norm, None),
            (ops.shape(keys)[0], -1, self.model_dim),
        )
        return self.attention.attend(
            *(queries, keys, values),
            mask=mask,
            return_attention_scores=return_attention_scores,
        )

    def _logits(self, contexts):
        # The softmax over the vocabulary needs float32 under mixed precision.
        return ops.cast(self.output_dense(self.output_dropout(contexts)), "float32")

    def get_config(self) -> dict[str, Any]:
        rate = self.context_dropout.rate
        return {**super().get_config(), "context_dropout": rate}


class _Cell:
    """Cell for `keras.layers.RNN`: returns hidden state and context side by side.

    A plain object, not a layer: the decoder has the layers and their weights.
    """

    def __init__(self, decoder, items, names):
        self.decoder = decoder
        self.items = items
        self.names = names
        self.compute_dtype = decoder.compute_dtype
        self.state_size = [decoder.model_dim] * len(names)
        self.output_size = 2 * decoder.model_dim

    def call(self, embedded, states):
        state = dict(zip(self.names, states, strict=True))
        new = self.decoder._read_token(embedded, state, self.items)
        output = ops.concatenate([new["hidden"], new["context"]], axis=-1)
        return output, [new[name] for name in self.names]

    __call__ = call
