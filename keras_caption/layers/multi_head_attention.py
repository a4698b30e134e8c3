from typing import Unpack

import keras
from jaxtyping import Bool, Float, Float32
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.base.errors import InputError
from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.sockets import (
    build_once,
    call_with_mask,
    combine_masks,
    make_norm,
    normalize,
    size_of,
)

# Replaces the scores of masked items. Finite, so that the softmax of a fully masked row
# is uniform instead of NaN; scores are float32, in which it does not overflow.
MASKED_SCORE = -1e9


class AttentionKeywords(KerasOptions, total=False):
    """Keywords of `MultiHeadAttention`, which it describes."""

    dropout: float
    query_norm: str | keras.Layer | None
    key_norm: str | keras.Layer | None
    norm_affine: bool
    norm_epsilon: float | None
    score: keras.Layer | None
    bias: keras.Layer | None
    memory: keras.Layer | None
    temperature: keras.Layer | None
    gate: keras.Layer | None
    output_projection: bool
    value_projection: bool
    query_projection: bool
    kernel_initializer: str | keras.Initializer
    output_initializer: str | keras.Initializer
    value_initializer: str | keras.Initializer | None


@keras.saving.register_keras_serializable("keras_caption")
class MultiHeadAttention(ConfiguredLayer):
    """Multi-head attention with six sockets for the papers' mechanisms.

        Q = query_norm(X_q W_q)    K = key_norm(X_v W_k)    V = X_v W_v
        K, V = memory(K, V)
        A = softmax(Q K^T / t + bias) V, per head, heads concatenated
        output = gate(A W_o, X_q)

    With all sockets empty it is the attention of Vaswani et al., 2017. A socket
    is filled by a Keras layer (or, for norms, by the name of one):

    | socket | how the layer is called |
    |---|---|
    | `query_norm`, `key_norm` | `norm(x, mask=mask)`, x `(batch, items, dim)` |
    | `score` | `score(queries, keys)` -> `(batch, heads, T, M)`, for Q K^T / t |
    | `bias` | `bias(query, value, boxes)` -> `(batch, heads, T, M)` |
    | `memory` | `memory(keys, values, mask)` -> the same three, of M' items |
    | `temperature` | `temperature(keys, mask=mask)` -> divisor of the scores |
    | `gate` | `gate(attended, query)` -> `(batch, T, dim)` |

    If `mask` is `None`, `memory` may return keys and values only. A `memory` needs two
    methods: `average`, which turns biases of items into biases of the items that
    `memory` returns, if there is a `bias`; and `share`, which turns attention weights
    of those back into weights of the items, for figures. See
    `keras_caption.layers.AreaMemory`. Norms and temperatures whose `call` has no `mask`
    are called without it. Such a norm sees padding too: use one that normalizes each
    item by itself, such as RMS normalization, or inputs without padding.

    The layer can be called as a whole, or in the steps that a decoder's cache needs:
    `project` computes keys and values, `items` applies the `memory` socket to them, and
    `attend` attends to the result.

    Args:
        num_heads: int, number of heads.
        key_dim: int, size of a query and a key per head.
        dropout: float, dropout rate of the attention weights. Defaults to 0.
        query_norm, key_norm: `None`, `"instance"`, `"batch"`, `"layer"`, another name
            of `keras_caption.layers.NORMS`, or a layer: the normalization of the
            projected queries (keys) before they are split into heads. Defaults to
            `None`.
        norm_affine: bool, whether norms given by name learn a gain and an offset.
            Defaults to `False`.
        norm_epsilon: float, added to the variance by norms given by name. Defaults to
            `None`, the default of the norm.
        score: Layer that computes the scores of queries and keys, each
            `(batch, heads, items, key_dim)`, such as
            `keras_caption.layers.AdditiveScore`. Defaults to `None`, the products
            divided by the temperature.
        bias: Layer that computes a bias of the scores. Defaults to `None`, no bias.
        memory: Layer that replaces the keys and values attended to. Defaults to
            `None`, the projected keys and values.
        temperature: Layer that computes the divisor of the scores. Defaults to
            `None`, `sqrt(key_dim)`.
        gate: Layer that combines the attended vectors with the inputs `query`. Defaults
            to `None`, the attended vectors alone.
        output_projection: bool, whether a linear layer (W_o) mixes the heads.
            Defaults to `True`.
        value_projection: bool, whether a linear layer (W_v) projects the values. If
            `False`, values are the items themselves, whose size must be divisible by
            `num_heads`. Defaults to `True`.
        query_projection: bool, whether a linear layer (W_q) projects the queries. If
            `False`, queries are the inputs themselves, whose size must be
            `num_heads * key_dim`. Defaults to `True`.
        kernel_initializer: Keras initializer, or its name, of W_q, W_k and W_v.
            Defaults to `"glorot_uniform"`.
        value_initializer: Initializer of W_v. Defaults to `kernel_initializer`.
        output_initializer: Initializer of W_o. Defaults to `"glorot_uniform"`.

    Call arguments:
        query: float `(batch, T, dim)`.
        value: float `(batch, M, value_dim)`, the items to attend to. Defaults to
            `query` (self-attention).
        query_mask: bool `(batch, T)`, True for valid items, for the norm of the
            queries. Defaults to `None`, all valid.
        value_mask: bool `(batch, M)`, True for valid items; others are not attended to.
            Defaults to `query_mask` in self-attention, else to `None`, all valid.
        attention_mask: bool, broadcastable to `(batch, T, M)`, True where a query may
            attend to an item. Defaults to `None`, everywhere.
        boxes: float `(batch, M, 4)`, for the `bias` socket.
        return_attention_scores: bool, whether to return the attention weights too.

    Returns:
        float `(batch, T, dim)`; with `return_attention_scores`, a pair of it and the
        weights, float32 `(batch, num_heads, T, M)`, with a `memory` over its M' items.
        A fully masked query attends uniformly; its output stays finite.

    Raises:
        InputError: If a norm has an unknown name, a score is given beside a
            temperature, or the layer has a bias and is called without boxes.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        *,
        dropout: float = 0.0,
        query_norm: str | keras.layers.Layer | None = None,
        key_norm: str | keras.layers.Layer | None = None,
        norm_affine: bool = False,
        norm_epsilon: float | None = None,
        score: keras.layers.Layer | None = None,
        bias: keras.layers.Layer | None = None,
        memory: keras.layers.Layer | None = None,
        temperature: keras.layers.Layer | None = None,
        gate: keras.layers.Layer | None = None,
        output_projection: bool = True,
        value_projection: bool = True,
        query_projection: bool = True,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        output_initializer: str | keras.Initializer = "glorot_uniform",
        value_initializer: str | keras.Initializer | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        # No autocast: boxes stay in float32, and the layers below cast other inputs.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.norm_affine = norm_affine
        self.norm_epsilon = norm_epsilon
        self.output_projection = output_projection
        self.value_projection = value_projection
        self.query_projection = query_projection
        self.kernel_initializer = kernel_initializer
        self.output_initializer = output_initializer
        self.value_initializer = value_initializer

        policy = self.dtype_policy
        self.query_norm, self.key_norm = (
            make_norm(norm, norm_affine, norm_epsilon, dtype=policy, name=name)
            for name, norm in (("query_norm", query_norm), ("key_norm", key_norm))
        )
        if score is not None and temperature is not None:
            raise InputError(
                "A `temperature` divides products of queries and keys: it excludes a "
                "`score` in their place."
            )
        self.score = score
        self.bias = bias
        self.memory = memory
        self.temperature = temperature
        self.gate = gate
        # All three are made in any case: each takes a seed of Keras's.
        query_dense = self._make_dense("query", kernel_initializer)
        key_dense = self._make_dense("key", kernel_initializer)
        value_dense = self._make_dense("value", value_initializer or kernel_initializer)
        # The order of assignments is the order of the weights in saved models.
        self.query_dense = query_dense if query_projection else None
        self.key_dense = key_dense
        self.value_dense = value_dense if value_projection else None
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)

    def _make_dense(self, name, initializer):
        """Makes the projection of queries, keys or values of all heads."""
        return MatrixDense(
            self.num_heads * self.key_dim,
            kernel_initializer=initializer,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape | None = None,
        boxes_shape: Shape | None = None,
    ) -> None:
        value_shape = value_shape or query_shape
        heads_dim = self.num_heads * self.key_dim
        if self.query_dense is not None:
            self.query_dense.build(query_shape)
        self.key_dense.build(value_shape)
        values_dim = size_of(value_shape)
        if self.value_dense is not None:
            self.value_dense.build(value_shape)
            values_dim = heads_dim
        build_once(self.query_norm, (*query_shape[:-1], heads_dim))
        build_once(self.key_norm, (*value_shape[:-1], heads_dim))
        build_once(self.bias, query_shape, value_shape, (*value_shape[:-1], 4))
        attended_shape = (*query_shape[:-1], values_dim)
        if self.output_projection:
            self.output_dense = MatrixDense(
                size_of(query_shape),
                kernel_initializer=self.output_initializer,
                dtype=self.dtype_policy,
                name="output",
            )
            self.output_dense.build(attended_shape)
            attended_shape = query_shape
        build_once(self.gate, attended_shape, query_shape)
        keys_shape = (value_shape[0], self.num_heads, value_shape[1], self.key_dim)
        values_shape = (*keys_shape[:-1], values_dim // self.num_heads)
        queries_shape = (*keys_shape[:2], query_shape[1], self.key_dim)
        build_once(self.score, queries_shape, keys_shape)
        build_once(self.memory, keys_shape, values_shape)
        build_once(self.temperature, keys_shape)

    def call(
        self,
        query: Float[Tensor, "batch T dim"],
        value: Float[Tensor, "batch M value_dim"] | None = None,
        query_mask: Bool[Tensor, "batch T"] | None = None,
        value_mask: Bool[Tensor, "batch M"] | None = None,
        attention_mask: Bool[Tensor, "#batch #T #M"] | None = None,
        boxes: Float[Tensor, "batch M 4"] | None = None,
        return_attention_scores: bool = False,
    ) -> (
        Float[Tensor, "batch T dim"]
        | tuple[Float[Tensor, "batch T dim"], Float32[Tensor, "batch num_heads T M"]]
    ):
        if value is None:
            value = query
            value_mask = query_mask if value_mask is None else value_mask
        bias = self._bias(query, value, boxes)
        keys, values = self.project(value, value_mask)
        mask = combine_masks(value_mask, attention_mask)
        keys, values, mask = self.items(keys, values, mask)
        return self.attend(
            query, keys, values, query_mask, mask, bias, return_attention_scores
        )

    @property
    def is_per_item(self) -> bool:
        """Whether masked items, and their order, change nothing for other items."""
        sockets = self.query_norm, self.key_norm, self.memory, self.temperature
        return all(socket is None for socket in sockets)

    def _bias(self, query, value, boxes):
        """Computes the bias of the scores over what `items` returns, or `None`."""
        if self.bias is None:
            return None
        if boxes is None:
            raise InputError(
                f"The attention layer '{self.name}' has a geometry bias and must be "
                "called with `boxes`."
            )
        bias = self.bias(query, value, boxes)
        if self.memory is None:
            return bias
        # In float32: a mean over many items loses digits in half precision.
        return self.memory.average(ops.cast(bias, "float32"))

    def project(
        self,
        value: Float[Tensor, "batch M value_dim"],
        mask: Bool[Tensor, "batch M"] | None = None,
    ) -> tuple[
        Float[Tensor, "batch num_heads M key_dim"],
        Float[Tensor, "batch num_heads M key_dim"],
    ]:
        """Projects the items of a memory to keys and values per head.

        Args:
            value: float `(batch, M, value_dim)`.
            mask: bool `(batch, M)`, True for valid items. Defaults to `None`, all.

        Returns:
            Keys and values, each float `(batch, num_heads, M, key_dim)`.
        """
        keys = normalize(self.key_dense(value), self.key_norm, mask)
        values = ops.cast(value, self.compute_dtype)
        if self.value_dense is not None:
            values = self.value_dense(value)
        return self._split_heads(keys), self._split_heads(values)

    def items(
        self,
        keys: Float[Tensor, "batch num_heads M key_dim"],
        values: Float[Tensor, "batch num_heads M key_dim"],
        mask: Bool[Tensor, "#batch #T #M"] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Applies the `memory` socket to keys and values.

        Args:
            keys, values: float `(batch, num_heads, M, key_dim)`, from `project`.
            mask: bool, broadcastable to `(batch, T, M)`. Defaults to `None`.

        Returns:
            Keys, values and mask of M' items; the arguments if there is no `memory`.
        """
        if self.memory is None:
            return keys, values, mask
        # A memory may return no mask if it is given none.
        keys, values, *masks = self.memory(keys, values, mask)
        return keys, values, masks[0] if masks else None

    def attend(
        self,
        query: Float[Tensor, "batch T dim"],
        keys: Float[Tensor, "batch num_heads M key_dim"],
        values: Float[Tensor, "batch num_heads M key_dim"],
        query_mask: Bool[Tensor, "batch T"] | None = None,
        mask: Bool[Tensor, "#batch #T #M"] | None = None,
        bias: Float[Tensor, "batch num_heads T M"] | None = None,
        return_attention_scores: bool = False,
    ) -> (
        Float[Tensor, "batch T dim"]
        | tuple[Float[Tensor, "batch T dim"], Float32[Tensor, "batch num_heads T M"]]
    ):
        """Attends to the keys and values that `items` returned.

        Args:
            query: float `(batch, T, dim)`.
            keys, values: float `(batch, num_heads, M, key_dim)`.
            query_mask: bool `(batch, T)`, for the norm of the queries. Defaults to
                `None`, all valid.
            mask: bool, broadcastable to `(batch, T, M)`. Defaults to `None`.
            bias: float `(batch, num_heads, T, M)`, added to the scores. Defaults to
                `None`.
            return_attention_scores: bool, whether to return the weights too.

        Returns:
            As `call`.
        """
        queries = ops.cast(query, self.compute_dtype)
        if self.query_dense is not None:
            queries = self.query_dense(query)
        queries = normalize(queries, self.query_norm, query_mask)
        queries = self._split_heads(queries)
        # (batch, heads, T, M'). Softmax in float32: half precision overflows at 65,504,
        # and MASKED_SCORE is beyond it.
        scores = ops.cast(self._scores(queries, keys, mask), "float32")
        if bias is not None:
            scores = scores + ops.cast(bias, "float32")
        if mask is not None:
            # After the bias, which must not lift a masked score; (batch, 1, T, M').
            scores = ops.where(ops.expand_dims(mask, 1), scores, MASKED_SCORE)
        weights = ops.softmax(scores)
        attended = ops.matmul(
            ops.cast(self.dropout_layer(weights), values.dtype), values
        )
        attended = ops.transpose(attended, (0, 2, 1, 3))  # (batch, T, heads, dim)
        values_dim = self.num_heads * values.shape[-1]
        attended = ops.reshape(attended, (-1, ops.shape(query)[1], values_dim))
        if self.output_projection:
            attended = self.output_dense(attended)
        if self.gate is not None:
            attended = self.gate(attended, query)
        return (attended, weights) if return_attention_scores else attended

    def _scores(self, queries, keys, mask):
        """Computes scores before bias and mask, `(batch, num_heads, T, items)`."""
        if self.score is not None:
            return self.score(queries, keys)
        if self.temperature is None:
            # Scale the queries, (batch, heads, T, key_dim), not the scores, of which
            # there are more.
            queries = queries * (self.key_dim**-0.5)
        else:
            temperature = call_with_mask(self.temperature, keys, mask)
            queries = queries / ops.cast(temperature, queries.dtype)
        return ops.matmul(queries, ops.transpose(keys, (0, 1, 3, 2)))

    def item_weights(
        self, weights: Float[Tensor, "batch num_heads T items"], length: int
    ) -> Float[Tensor, "batch num_heads T M"]:
        """Converts attention weights over what `items` returned to weights of M items.

        The weight of an area is shared evenly among its items.

        Args:
            weights: float `(batch, num_heads, T, M')`.
            length: int, number of items M.

        Returns:
            float `(batch, num_heads, T, M)`.
        """
        if self.memory is None:
            return weights
        return self.memory.share(weights, length)

    def _split_heads(self, x):
        key_dim = x.shape[-1] // self.num_heads
        x = ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads, key_dim))
        return ops.transpose(x, (0, 2, 1, 3))
