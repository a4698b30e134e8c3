import inspect

import keras
from keras import ops

from keras_caption.layers.instance_normalization import InstanceNormalization
from keras_caption.layers.matrix_dense import MatrixDense

# Added in place of a masked score, in float32.
MASKED_SCORE = -1e9


# Functions of whether a norm is affine, and of keyword arguments of any layer, that
# return the norm.
NORMS = {
    "instance": lambda affine, **kwargs: InstanceNormalization(affine, **kwargs),
    "batch": lambda affine, **kwargs: keras.layers.BatchNormalization(
        center=affine, scale=affine, **kwargs
    ),
    "layer": lambda affine, **kwargs: keras.layers.LayerNormalization(
        center=affine, scale=affine, **kwargs
    ),
}


def make_norm(identifier, affine, dtype, name):
    """The normalization layer that `identifier` names; layers pass through."""
    if identifier is None or isinstance(identifier, keras.layers.Layer):
        return identifier
    if identifier not in NORMS:
        raise ValueError(
            "A query or key norm must be None, a layer or one of "
            f"{', '.join(map(repr, NORMS))}. Received: {identifier!r}"
        )
    return NORMS[identifier](affine, dtype=dtype, name=name)


def build_once(layer, *shapes):
    """Builds a layer given by the user as its first call would, unless it is built.

    Keras's contract: a `build` of one argument takes the shape of the first input;
    of several, `x_shape` is that of the input `x` of `call`. A layer without a
    `build` of its own is left to its first call.

    Args:
        layer: Keras layer, or `None`.
        *shapes: Shapes of the inputs of `call`, in its order.
    """
    if layer is None or layer.built or type(layer).build is keras.layers.Layer.build:
        return
    expected = inspect.signature(layer.build).parameters
    if len(expected) == 1:
        layer.build(shapes[0])
        return
    inputs = inspect.signature(layer.call).parameters
    # `call` may have optional inputs that there is no shape of.
    known = zip((f"{name}_shape" for name in inputs), shapes, strict=False)
    layer.build(**{name: shape for name, shape in known if name in expected})


def call_with_mask(layer, x, mask):
    """`layer(x, mask=mask)`, or `layer(x)` if its `call` takes no mask."""
    if "mask" in inspect.signature(layer.call).parameters:
        return layer(x, mask=mask)
    return layer(x)


def normalize(x, norm, mask):
    """`norm(x)` over the valid items of `x`."""
    return x if norm is None else call_with_mask(norm, x, mask)


def combine_masks(value_mask, attention_mask):
    """What a query may look at: real items (batch, M) that it is allowed to see."""
    if value_mask is None:
        return attention_mask
    value_mask = ops.expand_dims(value_mask, 1)
    if attention_mask is None:
        return value_mask
    return ops.logical_and(value_mask, attention_mask)


@keras.saving.register_keras_serializable("keras_caption")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention with five sockets, one for each thing papers change.

        Q = query_norm(X_q W_q)    K = key_norm(X_k W_k)    V = X_v W_v
        K, V = memory(K, V)
        A = softmax(Q K^T / temperature + bias) V, per head, heads concatenated
        output = gate(A W_o, X_q)

    With all sockets empty it is the attention of Vaswani et al., 2017. A socket
    is filled by a Keras layer (or, for norms, by the name of one):

    | socket | how the layer is called |
    |---|---|
    | `query_norm`, `key_norm` | `norm(x, mask=mask)`, x `(batch, items, dim)` |
    | `bias` | `bias(query, key, boxes)` -> `(batch, heads, T, M)` |
    | `memory` | `memory(keys, values, mask)` -> the same, of other length M |
    | `temperature` | `temperature(keys, mask=mask)` -> what divides the scores |
    | `gate` | `gate(attended, query)` -> `(batch, T, dim)` |

    Given no mask, `memory` may return keys and values only. Next to a `bias` it needs
    a method `average`, which turns biases of items into those of what it returns, see
    `keras_caption.layers.AreaMemory`. Norms and temperatures
    whose `call` has no `mask` are called without it. Such a norm also sees padding:
    it should normalize each item by itself, as RMS normalization does, or be used
    where nothing is padded.

    The layer can be called at once, or in the steps that a decoder's cache needs:
    `project` makes keys and values, `items` turns them into what is attended to,
    and `attend` does it.

    Args:
        num_heads: Number of heads.
        key_dim: Size of a query and a key per head.
        dropout: Dropout rate of the attention weights.
        query_norm, key_norm: `None`, `"instance"`, `"batch"`, `"layer"`, or a
            layer: how projected queries (keys) are normalized, before they are
            split into heads.
        norm_affine: Whether norms given by name learn a gain and an offset.
        bias: Layer that makes a bias for the scores, or `None`.
        memory: Layer that makes the items attended to out of keys and values, or
            `None` for the keys and values themselves.
        temperature: Layer that makes what divides the scores, or `None` for
            `sqrt(key_dim)`.
        gate: Layer that decides what becomes of the result, or `None` for the
            result itself.
        output_projection: Whether heads are mixed by a linear layer (W_o).

    Call arguments:
        query: `(batch, T, dim)`.
        value: `(batch, M, value_dim)`; `query` if omitted (self-attention).
        key: `(batch, M, key_dim)`; `value` if omitted.
        query_mask: Optional bool `(batch, T)`, True where real; needed by norms.
        value_mask: Optional bool `(batch, M)`, True where real; nothing else is
            attended to. `query_mask` in self-attention.
        attention_mask: Optional bool, broadcastable to `(batch, T, M)`, True where
            a query may look.
        boxes: float `(batch, M, 4)`, for the `bias` socket.
        return_attention_scores: Whether to return the attention weights too.

    Returns:
        `(batch, T, dim)`; with `return_attention_scores`, a pair of it and the
        weights `(batch, num_heads, T, M)`. A query that may look nowhere attends
        to everything evenly, and is finite.

    Raises:
        ValueError: If a norm has an unknown name, or boxes are missing where
            there is a bias.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        *,
        dropout=0.0,
        query_norm=None,
        key_norm=None,
        norm_affine=False,
        bias=None,
        memory=None,
        temperature=None,
        gate=None,
        output_projection=True,
        **kwargs,
    ):
        # Boxes keep their float32; the layers below cast what they compute with.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.norm_affine = norm_affine
        self.output_projection = output_projection

        policy = self.dtype_policy
        self.query_norm = make_norm(query_norm, norm_affine, policy, "query_norm")
        self.key_norm = make_norm(key_norm, norm_affine, policy, "key_norm")
        self.bias = bias
        self.memory = memory
        self.temperature = temperature
        self.gate = gate
        self.query_dense = self._dense("query", num_heads * key_dim)
        self.key_dense = self._dense("key", num_heads * key_dim)
        self.value_dense = self._dense("value", num_heads * key_dim)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)

    def _dense(self, name, units):
        return MatrixDense(units, dtype=self.dtype_policy, name=name)

    def build(self, query_shape, value_shape=None, key_shape=None, boxes_shape=None):
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        heads_dim = self.num_heads * self.key_dim
        self.query_dense.build(query_shape)
        self.key_dense.build(key_shape)
        self.value_dense.build(value_shape)
        build_once(self.query_norm, (*query_shape[:-1], heads_dim))
        build_once(self.key_norm, (*key_shape[:-1], heads_dim))
        build_once(self.bias, query_shape, key_shape, (*key_shape[:-1], 4))
        attended_shape = (*query_shape[:-1], heads_dim)
        if self.output_projection:
            self.output_dense = self._dense("output", query_shape[-1])
            self.output_dense.build(attended_shape)
            attended_shape = query_shape
        build_once(self.gate, attended_shape, query_shape)
        keys_shape = (key_shape[0], self.num_heads, key_shape[1], self.key_dim)
        build_once(self.memory, keys_shape, keys_shape)
        build_once(self.temperature, keys_shape)

    def call(
        self,
        query,
        value=None,
        key=None,
        query_mask=None,
        value_mask=None,
        attention_mask=None,
        boxes=None,
        return_attention_scores=False,
    ):
        if value is None:
            value, value_mask = query, query_mask
        if key is None:
            key = value
        bias = None
        if self.bias is not None:
            if boxes is None:
                raise ValueError(
                    f"The attention layer '{self.name}' has a geometry bias and must "
                    "be called with `boxes`."
                )
            bias = self.bias(query, key, boxes)
            if self.memory is not None:
                bias = self.memory.average(ops.cast(bias, "float32"))
        keys, values = self.project(value, key, value_mask)
        mask = combine_masks(value_mask, attention_mask)
        keys, values, mask = self.items(keys, values, mask)
        return self.attend(
            query, keys, values, query_mask, mask, bias, return_attention_scores
        )

    def project(self, value, key=None, mask=None):
        """Keys and values per head, to be kept or attended to.

        Args:
            value: `(batch, M, value_dim)`.
            key: `(batch, M, key_dim)`, `value` if omitted.
            mask: Optional bool `(batch, M)`.

        Returns:
            Keys and values, each `(batch, num_heads, M, key_dim)`.
        """
        keys = normalize(
            self.key_dense(value if key is None else key), self.key_norm, mask
        )
        return self._split_heads(keys), self._split_heads(self.value_dense(value))

    def items(self, keys, values, mask=None):
        """What is attended to: the `memory` socket's view of keys and values.

        Args:
            keys, values: `(batch, num_heads, M, key_dim)`, made by `project`.
            mask: Optional bool, broadcastable to `(batch, T, M)`.

        Returns:
            Keys, values and mask, of `M'` items where there is a `memory`, else
            unchanged.
        """
        if self.memory is None:
            return keys, values, mask
        keys, values, *masks = self.memory(keys, values, mask)
        return keys, values, masks[0] if masks else None

    def attend(
        self,
        query,
        keys,
        values,
        query_mask=None,
        mask=None,
        bias=None,
        return_attention_scores=False,
    ):
        """Attention of queries to `items`.

        Args:
            query: `(batch, T, dim)`.
            keys, values: `(batch, num_heads, M, key_dim)`.
            query_mask: Optional bool `(batch, T)`, for the norm of the queries.
            mask: Optional bool, broadcastable to `(batch, T, M)`.
            bias: Optional `(batch, num_heads, T, M)`, added to the scores.
            return_attention_scores: As in `call`.

        Returns:
            As `call`.
        """
        queries = normalize(self.query_dense(query), self.query_norm, query_mask)
        queries = self._split_heads(queries)
        if self.temperature is None:
            queries = queries * (self.key_dim**-0.5)
        else:
            temperature = call_with_mask(self.temperature, keys, mask)
            queries = queries / ops.cast(temperature, queries.dtype)
        scores = ops.matmul(queries, ops.transpose(keys, (0, 1, 3, 2)))
        scores = ops.cast(scores, "float32")
        if bias is not None:
            scores = scores + ops.cast(bias, "float32")
        if mask is not None:
            scores = ops.where(ops.expand_dims(mask, 1), scores, MASKED_SCORE)
        weights = ops.softmax(scores)
        attended = ops.matmul(
            ops.cast(self.dropout_layer(weights), values.dtype), values
        )
        attended = ops.transpose(attended, (0, 2, 1, 3))
        length, heads_dim = ops.shape(query)[1], self.num_heads * self.key_dim
        attended = ops.reshape(attended, (-1, length, heads_dim))
        if self.output_projection:
            attended = self.output_dense(attended)
        if self.gate is not None:
            attended = self.gate(attended, query)
        return (attended, weights) if return_attention_scores else attended

    def item_weights(self, weights, length):
        """Attention weights of items; an area's are shared evenly by its own.

        Args:
            weights: `(batch, num_heads, T, M')`, weights of what `items` returned.
            length: int, number of items M.

        Returns:
            `(batch, num_heads, T, M)`.
        """
        if self.memory is None:
            return weights
        return self.memory.share(weights, length)

    def _split_heads(self, x):
        x = ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads, self.key_dim))
        return ops.transpose(x, (0, 2, 1, 3))

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "query_norm": serialize(self.query_norm),
            "key_norm": serialize(self.key_norm),
            "norm_affine": self.norm_affine,
            "bias": serialize(self.bias),
            "memory": serialize(self.memory),
            "temperature": serialize(self.temperature),
            "gate": serialize(self.gate),
            "output_projection": self.output_projection,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))
