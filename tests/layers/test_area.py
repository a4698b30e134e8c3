import itertools

import numpy as np
import pytest
import tensorflow as tf
from conftest import read_oracle
from keras import ops

import keras_caption as kc
from keras_caption.layers import AreaMemory, MultiHeadAttention

GRIDS = {
    "1d_L7_a3": {"max_width": 3},
    "2d_4x5_a2x2": {"max_height": 2, "max_width": 2, "grid_width": 5},
    "2d_4x5_a3x3": {"max_height": 3, "max_width": 3, "grid_width": 5},
    "2d_4x5_h2w3": {"max_height": 2, "max_width": 3, "grid_width": 5},
}


@pytest.fixture(scope="module")
def oracle():
    return read_oracle("area_attention")


def set_weights(memory, data, name):
    memory.height_embeddings.assign(data[f"{name}.area_height_emb"])
    memory.width_embeddings.assign(data[f"{name}.area_width_emb"])
    for layer, theirs in (
        (memory.hidden_dense, "dense"),
        (memory.key_dense, "dense_1"),
    ):
        layer.kernel.assign(data[f"{name}.{theirs}/kernel"])
        layer.bias.assign(data[f"{name}.{theirs}/bias"])


@pytest.mark.parametrize("grid", GRIDS)
def test_areas_match_the_official_code(oracle, grid):
    features = oracle[f"{grid}.features"][:, None]
    keys, sums = AreaMemory(**GRIDS[grid])(features, features)
    np.testing.assert_allclose(keys[:, 0], oracle[f"{grid}.area_mean@f64"], atol=1e-5)
    np.testing.assert_allclose(sums[:, 0], oracle[f"{grid}.area_sum@f64"], atol=1e-5)
    memory = AreaMemory(**GRIDS[grid], combined_features=True)
    memory.build(features.shape)
    set_weights(memory, oracle, f"{grid}.key_concat.w")
    keys, _ = memory(features, features)
    np.testing.assert_allclose(keys[:, 0], oracle[f"{grid}.key_concat@f64"], atol=1e-4)


@pytest.mark.parametrize("case", ["mean_sum", "concat_sum"])
@pytest.mark.parametrize("grid", GRIDS)
def test_attention_and_gradients_match_the_official_code(oracle, grid, case):
    name = f"att_{grid}"
    memory = AreaMemory(**GRIDS[grid], combined_features=case == "concat_sum")
    q, k, v = (tf.constant(oracle[f"{name}.{x}"]) for x in "qkv")
    memory.build(k.shape)
    if case == "concat_sum":
        set_weights(memory, oracle, f"{name}.{case}.w")
    valid = oracle[f"{name}.bias"][:, 0] > -1
    with tf.GradientTape() as tape:
        tape.watch([q, k, v])
        keys, values, mask = memory(k, v, valid)
        scores = tf.matmul(q, keys, transpose_b=True)
        weights = tf.nn.softmax(tf.where(mask[:, None], scores, -1e9))
        out = weights @ values
        total = tf.reduce_sum(out * oracle[f"{name}.grad_dir"])
    np.testing.assert_allclose(weights, oracle[f"{name}.{case}.weights@f64"], atol=1e-5)
    np.testing.assert_allclose(out, oracle[f"{name}.{case}.out@f64"], atol=1e-5)
    for x, gradient in zip("qkv", tape.gradient(total, [q, k, v]), strict=True):
        expected = oracle[f"{name}.{case}.grad_{x}@f64"]
        np.testing.assert_allclose(gradient, expected, atol=1e-4)


def test_values_of_areas_may_be_means(rng):
    values = rng.normal(size=(1, 2, 6, 4)).astype("float32")
    _, means = AreaMemory(max_width=3, mean_values=True)(values, values)
    sizes = np.repeat([1, 2, 3], [6, 5, 4])[:, None]
    _, sums = AreaMemory(max_width=3)(values, values)
    np.testing.assert_allclose(means, sums / sizes, atol=1e-6)


def brute_force(x, height, width, max_height, max_width):
    """Means, deviations and sums of the areas of `(height * width, dim)`."""
    grid = x.astype("float64").reshape(height, width, -1)
    parts = [
        grid[top : top + h, left : left + w].reshape(h * w, -1)
        for h in range(1, max_height + 1)
        for w in range(1, max_width + 1)
        for top in range(height - h + 1)
        for left in range(width - w + 1)
    ]
    means = np.array([part.mean(0) for part in parts])
    deviations = np.array([np.sqrt(part.var(0) + 1e-6) for part in parts])
    return means, deviations, np.array([part.sum(0) for part in parts])


def gradient_of_deviations(x):
    """Gradient of the sum of the deviations of all areas up to 4 x 4 on 14 x 14."""
    grid = x.astype("float64").reshape(14, 14, -1)
    gradient = np.zeros_like(grid)
    for h, w in itertools.product(range(1, 5), range(1, 5)):
        for top, left in itertools.product(range(15 - h), range(15 - w)):
            area = (slice(top, top + h), slice(left, left + w))
            centred = grid[area] - grid[area].mean((0, 1))
            deviation = np.sqrt((centred**2).mean((0, 1)) + 1e-6)
            gradient[area] += centred / (h * w * deviation)
    return gradient.reshape(x.shape)


@pytest.mark.parametrize("mean", [3.0, 1000.0])
def test_deviations_do_not_cancel_where_the_mean_is_large(rng, mean):
    x = (rng.normal(size=(14 * 14, 4)) + mean).astype("float32")
    memory = AreaMemory(4, 4, grid_width=14, combined_features=True)
    memory.build((1, 1, 196, 4))
    # Both layers of the perceptron copy the deviations.
    kernel = np.zeros((12, 4), "float32")
    kernel[4:8] = np.eye(4)
    memory.hidden_dense.kernel.assign(kernel)
    memory.key_dense.kernel.assign(np.eye(4))
    inputs = tf.constant(x[None, None])
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        keys, sums = memory(inputs, inputs)
        total = tf.reduce_sum(keys)
    _, deviations, expected_sums = brute_force(x, 14, 14, 4, 4)
    np.testing.assert_allclose(keys[0, 0], deviations, atol=1e-4)
    np.testing.assert_allclose(sums[0, 0], expected_sums, rtol=1e-6)
    gradient = tape.gradient(total, inputs)[0, 0]
    np.testing.assert_allclose(gradient, gradient_of_deviations(x), atol=1e-2)

    half = AreaMemory(4, 4, grid_width=14, combined_features=True, dtype="float16")
    keys, values = half(inputs / mean, inputs / mean)
    assert np.isfinite(keys).all()
    assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("length", "max_width"), [(1, 3), (2, 3), (7, 3), (7, 1), (5, 5)]
)
def test_number_of_areas_and_any_length(rng, length, max_width):
    x = rng.normal(size=(2, 3, length, 4)).astype("float32")
    keys, sums = AreaMemory(max_width=max_width)(x, x)
    if length >= max_width:
        expected = (length - max_width) * max_width + (max_width + 1) * max_width // 2
        assert keys.shape[2] == expected
    means, _, expected_sums = brute_force(x[1, 2], 1, length, 1, min(max_width, length))
    np.testing.assert_allclose(keys[1, 2], means, atol=1e-6)
    np.testing.assert_allclose(sums[1, 2], expected_sums, atol=1e-5)


def test_areas_with_padding_and_causal_masks(rng, oracle):
    valid = np.arange(7) < np.array([[7], [4]])
    x = rng.normal(size=(2, 1, 7, 4)).astype("float32")
    _, _, mask = AreaMemory(max_width=3)(x, x, valid[:, None])
    np.testing.assert_array_equal(mask[:, 0], oracle["area_mask_len7_4_a3"])

    name = "att_causal_1d_a2"
    k, v = oracle[f"{name}.k"], oracle[f"{name}.v"]
    past = oracle[f"{name}.bias"][0] > -1
    keys, values, mask = AreaMemory(max_width=2)(k, v, past)
    scores = np.where(
        mask[:, None], oracle[f"{name}.q"] @ np.swapaxes(keys, 2, 3), -1e9
    )
    out = np.array(ops.softmax(scores)) @ np.array(values)
    np.testing.assert_allclose(out, oracle[f"{name}.out@f64"], atol=1e-5)


def test_cached_steps_of_a_decoder_with_areas_match_a_call(rng):
    def attention():
        areas = AreaMemory(max_width=3, combined_features=True)
        return MultiHeadAttention(2, 4, memory=areas)

    block = kc.layers.TransformerDecoderBlock(attention(), attention(), 16)
    x = rng.normal(size=(3, 6, 8)).astype("float32")
    memory = rng.normal(size=(3, 5, 8)).astype("float32")
    mask = np.arange(5) < np.array([[5], [3], [1]])
    whole = block(x, memory, memory_mask=mask)
    items, cache = block.read_memory(memory, mask), block.empty_cache(3, 6)
    for t in range(6):
        out, cache = block.step(x[:, t : t + 1], items, cache, t)
        np.testing.assert_allclose(out[:, 0], whole[:, t], atol=1e-4)


def test_areas_of_several_rows_need_the_width_of_the_grid():
    with pytest.raises(kc.InputError, match="give its `grid_width`"):
        AreaMemory(max_height=2)


def test_the_bias_of_an_area_is_the_mean_of_its_items(rng):
    memory = AreaMemory(max_height=2, max_width=2, grid_width=3)
    queries, keys = (rng.normal(size=(2, 3, n, 4)).astype("float32") for n in (5, 6))
    areas, _ = memory(keys, keys)
    # Scores of mean keys are means of scores, which average() must find for any bias.
    expected = queries @ np.swapaxes(areas, 2, 3)
    bias = queries @ np.swapaxes(keys, 2, 3)
    np.testing.assert_allclose(memory.average(bias), expected, atol=1e-5)


def test_the_weight_of_an_area_is_shared_evenly_among_its_items(rng):
    memory = AreaMemory(max_width=3)
    weights = rng.dirichlet(np.ones(9), size=(2, 3, 4)).astype("float32")
    spans = [range(i, i + n) for n in (1, 2, 3) for i in range(5 - n)]
    expected = np.zeros((2, 3, 4, 4))
    for area, span in enumerate(spans):
        expected[..., span] += weights[..., area, None] / len(span)
    np.testing.assert_allclose(memory.share(weights, 4), expected, atol=1e-6)
