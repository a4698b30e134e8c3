from typing import Any, Unpack

import keras
from jaxtyping import Bool, Float, Float32, Int
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor
from keras_caption.layers import MatrixDense, WordEmbedding
from keras_caption.layers.lstm import make_lstm
from keras_caption.layers.masked_mean import masked_mean
from keras_caption.layers.sockets import build_once
from keras_caption.models.token_decoder import Decoded, TokenDecoder


@keras.saving.register_keras_serializable("keras_caption")
class LSTMDecoder(TokenDecoder):
    """An LSTM language model that attends to a memory.

    At each token, with h the output of the last LSTM,

        c = Attention(h, memory)
        p = softmax(W_p tanh(W_c [c; h]))

    These are Eq. 5 and 6 of Luong et al. The attentional vector is not fed back, so
    that all positions of a known sequence attend at once. The initial hidden state of
    each LSTM is `tanh(W mean(memory))` and its initial cell state is zero, unless the
    caller passes both as `states`. This is the decoder of the area paper's translator
    (section 3.1.2); the paper describes neither choice.

    Args:
        vocabulary_size: int, vocabulary size, special tokens included.
        model_dim: int, size of embeddings and states.
        num_layers: int, number of LSTMs.
        attention: `keras_caption.layers.MultiHeadAttention`.
        dropout: float, dropout rate of embeddings and of the outputs of LSTMs.
        has_states: bool, whether the caller passes `states`. Defaults to `False`.

    Call arguments:
        tokens: int `(batch * C, T)`, C sequences for each memory, from BOS on.
        memory: float `(batch, M, memory_dim)`.
        memory_mask: Optional bool `(batch, M)`, True where an item is valid.
        states: float `(batch, num_layers, 2, model_dim)`, hidden and cell state of each
            LSTM before the first token.
        return_attention_scores: bool, whether to return the attention weights too. The
            weight of an area is shared evenly by its items.

    Returns:
        Logits, float32 `(batch * C, T, vocabulary_size)`: those at position t are of
        the token after tokens 0 to t. With `return_attention_scores`, a pair: logits
        and attention weights, `(batch, num_heads, C * T, M)`.

    References:
        Luong, Pham, Manning, "Effective Approaches to Attention-based Neural Machine
        Translation", EMNLP 2015; Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019.
    """

    can_grow = True  # in that the state needs no length

    def __init__(
        self,
        vocabulary_size: int,
        model_dim: int,
        num_layers: int,
        attention: keras.layers.Layer,
        dropout: float = 0.1,
        has_states: bool = False,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        self.has_states = has_states
        self.vocabulary_size = vocabulary_size
        self.model_dim = model_dim
        self.num_layers = num_layers
        self.attention = attention
        self.dropout = dropout
        policy = self.dtype_policy
        self.embedding = WordEmbedding(vocabulary_size, model_dim, dtype=policy)
        self.dropouts = [
            keras.layers.Dropout(dropout, dtype=policy) for _ in range(num_layers + 1)
        ]
        self.bridges = [
            MatrixDense(model_dim, "tanh", dtype=policy, name=f"bridge_{i}")
            for i in range(0 if has_states else num_layers)
        ]
        self.lstms = [
            make_lstm(model_dim, dtype=policy, name=f"lstm_{i}")
            for i in range(num_layers)
        ]
        self.context_dense = MatrixDense(
            model_dim, "tanh", dtype=policy, name="context"
        )
        self.output_dense = MatrixDense(vocabulary_size, dtype=policy, name="words")

    def build(self, tokens_shape, memory_shape, states_shape=None):
        hidden_shape = (*tokens_shape, self.model_dim)
        self.embedding.build(tokens_shape)
        for bridge in self.bridges:
            bridge.build((memory_shape[0], memory_shape[-1]))
        for lstm in self.lstms:
            lstm.build(hidden_shape)
        build_once(self.attention, hidden_shape, memory_shape)
        self.context_dense.build((*tokens_shape, 2 * self.model_dim))
        self.output_dense.build(hidden_shape)

    def call(
        self,
        tokens: Int[Tensor, "batch*C T"],
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        states: Float[Tensor, "batch num_layers 2 model_dim"] | None = None,
        return_attention_scores: bool = False,
    ) -> Decoded:
        items = self.read_memory(memory, memory_mask)
        captions = ops.shape(tokens)[0] // ops.shape(memory)[0]
        x = self.dropouts[0](self.embedding(tokens))
        first = self._first_states(memory, memory_mask, states)
        for lstm, drop, pair in zip(self.lstms, self.dropouts[1:], first, strict=True):
            # (batch, model_dim) to (batch * C, model_dim)
            pair = [ops.repeat(state, captions, axis=0) for state in pair]
            x = drop(lstm(x, initial_state=pair))
        logits, scores = self._attend(x, items)
        if not return_attention_scores:
            return logits
        return logits, self.attention.item_weights(scores, ops.shape(memory)[1])

    def read_memory(self, memory, memory_mask=None) -> Any:
        """Keys, values and mask of the items to attend to."""
        keys, values = self.attention.project(memory, mask=memory_mask)
        if memory_mask is not None:
            memory_mask = ops.expand_dims(memory_mask, 1)  # (batch, 1, M)
        return self.attention.items(keys, values, memory_mask)

    def start(
        self,
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        states: Float[Tensor, "batch num_layers 2 model_dim"] | None = None,
        length: int | None = 20,
    ) -> dict[str, Any]:
        """The state before the first token.

        Args:
            memory: float `(batch, M, memory_dim)`.
            memory_mask: Optional bool `(batch, M)`.
            states: Optional float `(batch, num_layers, 2, model_dim)`, hidden and cell
                state of each LSTM.
            length: Ignored: the state does not grow.
        """
        return {
            "memory": self.read_memory(memory, memory_mask),
            "cache": self._first_states(memory, memory_mask, states),
        }

    def step(
        self,
        tokens: Int[Tensor, " batch*C"],
        state: dict[str, Any],
        index: Int[Tensor, ""],
    ) -> tuple[Float32[Tensor, "batch*C vocabulary_size"], dict[str, Any]]:
        """Reads one more token of every sequence.

        Args:
            tokens: int `(batch * C,)`, the token at position `index`.
            state: dict, as `start` or the last `step` returned it.
            index: int scalar, ignored: the state has no positions.

        Returns:
            Logits of the next token, float32 `(batch * C, vocabulary_size)`, and the
            state.
        """
        x, cache = self.embedding.look_up(tokens), []
        for lstm, states in zip(self.lstms, state["cache"], strict=True):
            x, states = lstm.cell(x, states)
            cache.append(states)
        logits, _ = self._attend(ops.expand_dims(x, 1), state["memory"])
        return ops.squeeze(logits, 1), {**state, "cache": cache}

    def _first_states(self, memory, memory_mask, states):
        """Hidden and cell state of each LSTM, a list of pairs `(batch, model_dim)`."""
        if states is not None:
            return [[states[:, i, 0], states[:, i, 1]] for i in range(self.num_layers)]
        mean = masked_mean(memory, memory_mask)
        hidden = [bridge(mean) for bridge in self.bridges]
        return [[state, ops.zeros_like(state)] for state in hidden]

    def _attend(self, hidden, items):
        """Logits and attention weights of hidden states `(batch * C, T, model_dim)`."""
        keys, values, mask = items
        length = ops.shape(hidden)[1]
        # The C sequences of one memory share its keys: (batch, C * T, model_dim).
        queries = ops.reshape(hidden, (ops.shape(keys)[0], -1, self.model_dim))
        context, scores = self.attention.attend(
            queries, keys, values, mask=mask, return_attention_scores=True
        )
        context = ops.reshape(context, (-1, length, self.model_dim))
        x = self.context_dense(ops.concatenate([context, hidden], axis=-1))
        # The softmax over the vocabulary needs float32 under mixed precision.
        return ops.cast(self.output_dense(x), "float32"), scores
