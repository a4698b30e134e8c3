import keras
import numpy as np
import pytest
import reference

from keras_caption.base.errors import InputError
from keras_caption.layers import InstanceNormalization, MultiHeadAttention
from keras_caption.layers.masked_mean import masked_mean


def test_instance_normalization_follows_eq_6_over_valid_regions(rng):
    x = rng.normal(3.0, 2.0, size=(3, 7, 5)).astype("float32")
    mask = np.arange(7) < np.array([[7], [4], [1]])  # full, padded, one region
    layer = InstanceNormalization()
    out = np.array(layer(x, mask=mask))
    for row in range(3):
        expected = reference.instance_norm(
            x[row].astype("float64"), mask[row], layer.epsilon
        )
        np.testing.assert_allclose(out[row], expected, atol=1e-5)
    unmasked = np.array(layer(x))
    np.testing.assert_allclose(unmasked[0], out[0], atol=1e-6)
    assert not np.array(layer(x, mask=np.zeros((3, 7), bool))).any()  # nor NaN
    assert layer.count_params() == 0


def test_affine_instance_normalization_learns_gain_and_offset(rng):
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    layer = InstanceNormalization(affine=True)
    layer.build(x.shape)
    layer.set_weights([np.float32([1, 2, 3]), np.float32([0, 1, 2])])
    plain = np.array(InstanceNormalization()(x))
    np.testing.assert_allclose(
        np.array(layer(x)), plain * [1, 2, 3] + [0, 1, 2], atol=1e-5
    )


def test_registered_norms_take_nsa_apart(rng):
    x = rng.normal(3.0, 2.0, size=(2, 7, 5)).astype("float32")
    mask = np.arange(7) < np.array([[7], [4]])
    row = x[1, :4].astype("float64")
    deviation = np.sqrt(row.var(0) + 0.25)
    for name, expected in {
        "instance": (row - row.mean(0)) / deviation,
        "instance_centre": row - row.mean(0),
        "instance_scale": row / deviation,
    }.items():
        norm = MultiHeadAttention(2, 4, query_norm=name, norm_epsilon=0.25).query_norm
        out = np.array(norm(x, mask=mask))
        np.testing.assert_allclose(out[1, :4], expected, atol=1e-5, err_msg=name)
        assert not out[1, 4:].any(), name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_survives_large_values(rng, dtype):
    x = (rng.normal(size=(1, 6, 3)) * 3e3).astype("float32")
    out = InstanceNormalization(dtype=dtype)(keras.ops.cast(x, dtype))
    out = np.array(keras.ops.cast(out, "float32"))
    np.testing.assert_allclose(out.std(1), 1.0, atol=0.05)
    mask = np.arange(6) < 5
    large = keras.ops.cast(np.where(mask[:, None], abs(x) + 2e4, np.nan), dtype)
    mean = np.array(keras.ops.cast(masked_mean(large, mask[None]), "float32"))
    expected = np.array(keras.ops.cast(large, "float32"))[:, :5].mean(1)
    np.testing.assert_allclose(mean, expected, rtol=0.01)


def test_batch_norm_ignores_padding_and_keeps_moving_statistics(rng):
    x = rng.normal(2.0, 3.0, size=(4, 6, 8)).astype("float32")
    mask = np.arange(6) < np.array([[6], [3], [1], [5]])
    layer = MultiHeadAttention(2, 4, query_norm="batch")
    layer(x, query_mask=mask, training=True)
    queries = reference.dense(layer.query_dense, x.astype("float64"))[mask]
    moving = np.array(layer.query_norm.moving_mean)
    np.testing.assert_allclose(moving, 0.01 * queries.mean(0), atol=1e-4)
    garbage = np.where(mask[..., None], x, 100.0)
    for training in (True, False):
        out, other = (
            np.array(layer(y, query_mask=mask, training=training))[mask]
            for y in (x, garbage)
        )
        np.testing.assert_allclose(out, other, atol=1e-5 if training else 2e-3)


def test_norms_by_name_with_and_without_affine(rng):
    x = rng.normal(size=(2, 5, 8)).astype("float32")
    counts = {}
    for name in ("instance", "batch", "layer"):
        for affine in (False, True):
            layer = MultiHeadAttention(2, 4, key_norm=name, norm_affine=affine)
            layer(x)
            counts[name, affine] = sum(
                np.size(w) for w in layer.key_norm.trainable_weights
            )
    assert counts == {(n, a): 16 * a for n, a in counts}
    with pytest.raises(InputError, match="'instance_scale', 'batch', 'layer'"):
        MultiHeadAttention(2, 4, query_norm="group")
