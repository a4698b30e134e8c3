"""Norms of one experiment, of experiments/papers/noise.py."""

import numpy as np

from experiments.papers import noise
from keras_caption.layers import InstanceNormalization, MultiHeadAttention


def test_noise_scales_and_shifts_all_items_of_a_step(rng):
    x = rng.normal(size=(2, 7, 5)).astype("float32")
    mask = np.arange(7) < np.array([[7], [4]])
    noisy = noise.NoisyNormalization(noise=0.5)
    plain, first, second = (
        np.array(noisy(x, mask=mask, training=training))[mask]
        for training in (False, True, True)
    )
    assert np.abs(first - second).max() > 0.01
    centred = np.array(InstanceNormalization()(x, mask=mask))[mask]
    np.testing.assert_allclose(plain, centred, atol=1e-6)
    for channel in range(5):
        gain, offset = np.polyfit(plain[:, channel], first[:, channel], 1)
        assert 0.5 <= gain <= 1.5
        assert abs(offset) <= 0.5
        fitted = gain * plain[:, channel] + offset
        np.testing.assert_allclose(first[:, channel], fitted, atol=1e-5)


def test_few_distinct_items_are_not_normalized(rng):
    a, b, c = np.eye(3, dtype="float32") * 4
    near = a + np.float32(0.1)
    x = np.stack([[a, near, b, a, c], [a, b, c, a, near]])
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]], bool)  # the first has no c
    norm = MultiHeadAttention(1, 3, query_norm="instance_distinct").query_norm
    out, expected = np.array(norm(x, mask=mask)), InstanceNormalization()(x, mask=mask)
    np.testing.assert_allclose(out[0, :4], x[0, :4])
    np.testing.assert_allclose(out[1], expected[1], atol=1e-6)
    # Dropout of a tenth makes equal items no distinct ones.
    items = rng.normal(size=64) * (rng.random((1, 9, 64)) > 0.1) / 0.9
    items = items.astype("float32")
    norm = noise.NoisyNormalization(min_distinct=2)
    np.testing.assert_allclose(norm(items), items)
