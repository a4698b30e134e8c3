import keras
import numpy as np
import pytest
import reference
from conftest import random_boxes
from keras import ops

from keras_caption.base.errors import InputError
from keras_caption.layers import (
    AdditiveScore,
    GeometryAwareSelfAttention,
    GeometryBias,
    LengthTemperature,
    MultiHeadAttention,
    NormalizedSelfAttention,
    ProductScore,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)


@pytest.mark.parametrize("norms", [(None, None), ("instance", None), ("instance",) * 2])
@pytest.mark.parametrize(
    ("kind", "signed"), [(None, False), ("query", False), ("query+key", True)]
)
@pytest.mark.parametrize("batch", [1, 3])
def test_self_attention_follows_the_equation(rng, norms, kind, signed, batch):
    keras.utils.set_random_seed(0)  # of weights whose rounding is within tolerance
    n = 7
    x = rng.normal(size=(batch, n, 12)).astype("float32")
    boxes = random_boxes(rng, batch, n)
    mask = np.arange(n) < np.array([[7], [4], [1]])[:batch]
    layer = MultiHeadAttention(
        3,
        4,
        query_norm=norms[0],
        key_norm=norms[1],
        bias=kind and GeometryBias(3, kind, geometry_dim=5, signed=signed),
    )
    out = np.array(layer(x, query_mask=mask, boxes=boxes))
    for row in range(batch):
        expected = reference.attention(
            layer,
            x[row].astype("float64"),
            x[row].astype("float64"),
            np.tile(mask[row], (n, 1)),
            mask[row],
            boxes[row].astype("float64"),
        )
        valid = mask[row]
        np.testing.assert_allclose(
            out[row][valid], expected[valid], rtol=1e-4, atol=1e-5
        )


def test_cross_attention_and_attention_mask(rng):
    x = rng.normal(size=(1, 4, 8)).astype("float32")
    memory = rng.normal(size=(1, 6, 5)).astype("float32")
    allowed = rng.random((1, 4, 6)) < 0.5
    allowed[:, :, 0] = True
    layer = MultiHeadAttention(2, 3)
    out, weights = layer(
        x, memory, attention_mask=allowed, return_attention_scores=True
    )
    expected = reference.attention(
        layer, x[0].astype("float64"), memory[0].astype("float64"), allowed[0]
    )
    np.testing.assert_allclose(np.array(out)[0], expected, atol=1e-5)
    np.testing.assert_allclose(np.array(weights).sum(-1), 1.0, atol=1e-5)
    assert np.array(weights)[:, :, ~allowed[0]].max() == 0
    # An item counts if both masks allow it.
    valid = np.array([[True, False, True, True, False, True]])
    both = layer(x, memory, value_mask=valid, attention_mask=allowed)
    expected = layer(x, memory, attention_mask=allowed & valid[:, None])
    np.testing.assert_allclose(both, expected, atol=1e-6)
    # In self-attention too.
    layer, valid = MultiHeadAttention(2, 3), valid[:, :4]
    expected = layer(x, x, value_mask=valid)
    np.testing.assert_allclose(layer(x, value_mask=valid), expected, atol=1e-6)


def test_additive_attention_to_the_items_themselves(rng):
    x = rng.normal(size=(2, 3, 8)).astype("float32")
    memory = rng.normal(size=(2, 6, 10)).astype("float32")
    mask = np.arange(6) < np.array([[6], [2]])
    layer = MultiHeadAttention(
        2, 3, score=AdditiveScore(), output_projection=False, value_projection=False
    )
    out, weights = layer(x, memory, value_mask=mask, return_attention_scores=True)
    queries, keys = (
        reference.dense(dense, values.astype("float64")).reshape(2, -1, 2, 3)
        for dense, values in ((layer.query_dense, x), (layer.key_dense, memory))
    )
    hidden = np.tanh(queries[:, :, None] + keys[:, None])
    scores = (hidden * np.array(layer.score.vectors)).sum(-1)  # batch, T, M, heads
    scores[~np.broadcast_to(mask[:, None, :, None], scores.shape)] = -np.inf
    expected = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(
        weights, expected.transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-6
    )
    halves = memory.reshape(2, 6, 2, 5)
    expected = np.einsum("btmh,bmhd->bthd", expected, halves).reshape(2, 3, 10)
    np.testing.assert_allclose(out, expected, atol=1e-5)
    with pytest.raises(InputError, match="excludes a `score`"):
        MultiHeadAttention(2, 3, score=AdditiveScore(), temperature=LengthTemperature())


@pytest.mark.parametrize(
    "layer",
    [
        NormalizedSelfAttention(2, 4, key_norm="instance"),
        NormalizedSelfAttention(2, 4, query_norm="layer"),
        GeometryAwareSelfAttention(
            2, 4, kind="query+key", signed=True, query_norm="instance"
        ),
    ],
    ids=["instance", "layer", "geometry"],
)
@pytest.mark.parametrize("regions", [1, 5])
def test_padding_never_leaks(rng, layer, regions):
    x = rng.normal(size=(2, 8, 8)).astype("float32")
    boxes = random_boxes(rng, 2, 8)
    mask = np.tile(np.arange(8) < regions, (2, 1))
    garbage = np.where(mask[..., None], x, 1e3)
    other_boxes = np.where(mask[..., None], boxes, 0.0)
    out = np.array(layer(x, query_mask=mask, boxes=boxes))[mask]
    other = np.array(layer(garbage, query_mask=mask, boxes=other_boxes))[mask]
    short = layer(x[:, :regions], boxes=boxes[:, :regions])
    np.testing.assert_allclose(other, out, atol=1e-5)
    np.testing.assert_allclose(np.array(short).reshape(out.shape), out, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_fully_masked_queries_are_finite_in_half_precision(rng, dtype):
    x = ops.cast(rng.normal(size=(1, 3, 8)), dtype)
    layer = NormalizedSelfAttention(2, 4, dtype=dtype)
    out = layer(x, query_mask=np.zeros((1, 3), bool))
    assert np.isfinite(np.array(ops.cast(out, "float32"))).all()


@keras.saving.register_keras_serializable("test")
class Pairs(keras.layers.Layer):
    """Fills `memory`: attends to sums of two neighbours, both of them valid."""

    def call(self, keys, values, mask):
        def pairs(x):
            return x[:, :, :-1] + x[:, :, 1:]

        return (
            pairs(keys),
            pairs(values),
            ops.logical_and(mask[..., :-1], mask[..., 1:]),
        )


@keras.saving.register_keras_serializable("test")
class Length(keras.layers.Layer):
    """Fills `temperature`."""

    def call(self, keys, mask):
        return (ops.shape(keys)[2] + keys.shape[3]) ** 0.5


@keras.saving.register_keras_serializable("test")
class Sigmoid(keras.layers.Layer):
    """Fills `gate`."""

    def build(self, attended_shape, query_shape):
        self.dense = keras.layers.Dense(query_shape[-1])
        self.dense.build((*attended_shape[:-1], attended_shape[-1] + query_shape[-1]))

    def call(self, attended, query):
        both = ops.concatenate([attended, query], axis=-1)
        return ops.sigmoid(self.dense(both)) * query


def test_every_socket_is_used_and_saved(rng, tmp_path):
    x = rng.normal(size=(2, 5, 8)).astype("float32")
    mask = np.arange(5) < np.array([[5], [3]])
    inputs = keras.Input((5, 8)), keras.Input((5,), dtype="bool")
    layer = MultiHeadAttention(
        2,
        4,
        memory=Pairs(),
        temperature=Length(),
        gate=Sigmoid(),
        output_projection=False,
    )
    model = keras.Model(inputs, layer(inputs[0], query_mask=inputs[1]))
    out = np.array(model([x, mask]))

    row = x[1].astype("float64")
    q, k, v = (
        reference.dense(dense, row)
        for dense in (layer.query_dense, layer.key_dense, layer.value_dense)
    )
    k, v = ((y[:-1] + y[1:])[:2] for y in (k, v))  # pairs of the three valid items
    heads = []
    for h in range(2):
        head = slice(4 * h, 4 * h + 4)
        scores = q[:, head] @ k[:, head].T / np.sqrt(4 + 4)
        weights = np.stack([reference.softmax(s) for s in scores])
        heads.append(weights @ v[:, head])
    gate = reference.dense(layer.gate.dense, np.concatenate([*heads, row], axis=-1))
    expected = row / (1 + np.exp(-gate))
    np.testing.assert_allclose(out[1], expected, atol=1e-5)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(np.array(loaded([x, mask])), out, atol=1e-6)


def test_attention_may_project_keys_alone_and_divide_by_nothing(rng):
    x, y = rng.normal(size=(2, 3, 8)), rng.normal(size=(2, 5, 8))
    layer = MultiHeadAttention(
        2,
        4,
        score=ProductScore(),
        **dict.fromkeys(
            ("query_projection", "value_projection", "output_projection"), False
        ),
    )
    out = np.array(layer(x.astype("float32"), y.astype("float32")))
    keys = reference.dense(layer.key_dense, y[1])
    expected = []
    for head in (slice(0, 4), slice(4, 8)):
        scores = x[1, :, head] @ keys[:, head].T
        weights = np.stack([reference.softmax(s) for s in scores])
        expected.append(weights @ y[1, :, head])
    np.testing.assert_allclose(out[1], np.concatenate(expected, -1), atol=1e-5)
    assert layer.count_params() == 8 * 8 + 8


@keras.saving.register_keras_serializable("test")
class Plain(keras.layers.Layer):
    """Fills any socket but `memory`: no `build`, no mask, a layer of its own."""

    def __init__(self, units, as_scores=False, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.as_scores = as_scores
        self.dense = keras.layers.Dense(units, dtype=self.dtype_policy)

    def call(self, x, *unused):
        y = self.dense(x)
        return ops.transpose(y, (0, 2, 1))[:, :, None] if self.as_scores else y

    def get_config(self):
        config = {"units": self.units, "as_scores": self.as_scores}
        return {**super().get_config(), **config}


@keras.saving.register_keras_serializable("test")
class BoxScores(keras.layers.Layer):
    """Fills `bias`; its `build` takes the shapes of two of its inputs."""

    def build(self, boxes_shape, query_shape):
        self.kernel = self.add_weight((boxes_shape[-1], query_shape[-1]))

    def call(self, query, key, boxes):
        scores = ops.matmul(ops.matmul(boxes, self.kernel), ops.swapaxes(key, 1, 2))
        return ops.expand_dims(scores, 1)


def scale_by_rms(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + keras.config.epsilon())


SOCKETS = {
    "rms": lambda: {"query_norm": keras.layers.RMSNormalization()},
    "rms of keys": lambda: {"key_norm": keras.layers.RMSNormalization()},
    "group": lambda: {
        name: keras.layers.GroupNormalization(2) for name in ("query_norm", "key_norm")
    },
    "batch": lambda: {
        name: keras.layers.BatchNormalization() for name in ("query_norm", "key_norm")
    },
    "layer": lambda: {"query_norm": keras.layers.LayerNormalization()},
    "plain norms": lambda: {"query_norm": Plain(8), "key_norm": Plain(8)},
    "plain gate": lambda: {"gate": Plain(8)},
    "plain bias": lambda: {"bias": Plain(2, as_scores=True)},
    "bias": lambda: {"bias": BoxScores()},
    "plain temperature": lambda: {"temperature": Plain(1)},
}


@pytest.mark.parametrize("name", SOCKETS)
def test_sockets_take_any_layer(rng, name, tmp_path):
    x, boxes = rng.normal(size=(2, 5, 8)).astype("float32"), random_boxes(rng, 2, 5)
    mask = np.ones((2, 5), bool)
    sockets = SOCKETS[name]()
    layer = MultiHeadAttention(2, 4, **sockets)
    shapes = [(5, 8), (5, 4), (5,)]
    a, b, c = (
        keras.Input(shape, dtype=dtype)
        for shape, dtype in zip(shapes, ("float32", "float32", "bool"), strict=True)
    )
    model = keras.Model([a, b, c], layer(a, boxes=b, query_mask=c))
    plain = MultiHeadAttention(2, 4)
    plain.build(x.shape)
    for dense, plain_dense in (
        (getattr(layer, part), getattr(plain, part))
        for part in ("query_dense", "key_dense", "value_dense", "output_dense")
    ):
        plain_dense.set_weights(dense.get_weights())
    out = np.array(model([x, boxes, mask]))
    if name != "batch":  # which is the identity before any training
        assert np.abs(out - plain(x)).max() > 1e-3
    if name == "rms":
        row = x[0].astype("float64")
        q, k, v = (
            reference.dense(part, row)
            for part in (layer.query_dense, layer.key_dense, layer.value_dense)
        )
        q = scale_by_rms(q)
        heads = [
            np.stack([reference.softmax(s) for s in q[:, h] @ k[:, h].T / 2]) @ v[:, h]
            for h in (slice(0, 4), slice(4, 8))
        ]
        expected = reference.dense(layer.output_dense, np.concatenate(heads, -1))
        np.testing.assert_allclose(out[0], expected, atol=1e-5)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(np.array(loaded([x, boxes, mask])), out, atol=1e-6)


def test_sequences_share_a_memory_and_cached_steps_match_a_call(rng):
    x = rng.normal(size=(6, 4, 8)).astype("float32")  # 3 captions of 2 images
    memory = rng.normal(size=(2, 5, 8)).astype("float32")
    mask = np.arange(5) < np.array([[5], [2]])
    block = TransformerDecoderBlock(
        MultiHeadAttention(2, 4), MultiHeadAttention(2, 4), 16
    )
    out = np.array(block(x, memory, memory_mask=mask))
    repeated = block(x, np.repeat(memory, 3, 0), memory_mask=np.repeat(mask, 3, 0))
    np.testing.assert_allclose(np.array(repeated), out, atol=1e-5)

    items, cache = block.read_memory(memory, mask), block.empty_cache(6, 4)
    for t in range(4):
        step, cache = block.step(x[:, t : t + 1], items, cache, t)
        np.testing.assert_allclose(np.array(step)[:, 0], out[:, t], atol=1e-5)


def test_encoder_block_is_post_norm(rng):
    x = rng.normal(size=(1, 4, 8)).astype("float32")
    attention = MultiHeadAttention(2, 4)
    block = TransformerEncoderBlock(attention, 16)
    out = np.array(block(x))[0]

    def layer_norm(y):
        return (y - y.mean(-1, keepdims=True)) / np.sqrt(
            y.var(-1, keepdims=True) + block.attention_norm.epsilon
        )

    row = x[0].astype("float64")
    everywhere = np.ones((4, 4), bool)
    hidden = layer_norm(row + reference.attention(attention, row, row, everywhere))
    feedforward = block.feedforward
    inner = np.maximum(reference.dense(feedforward.hidden_dense, hidden), 0)
    expected = layer_norm(hidden + reference.dense(feedforward.output_dense, inner))
    np.testing.assert_allclose(out, expected, atol=1e-5)
