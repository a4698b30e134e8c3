import keras
import numpy as np
import pytest
from keras import ops

import keras_caption as kc


def test_schedule_is_the_papers():
    schedule = kc.training.WarmupStepDecay(steps_per_epoch=10)
    rates = [
        float(schedule(10 * epoch + step)) for epoch in range(13) for step in (0, 9)
    ]
    expected = [1e-4, 2e-4, 3e-4, 3e-4, 3e-4, 3e-4] + [1.5e-4] * 3 + [0.75e-4] * 3
    expected.append(0.375e-4)
    np.testing.assert_allclose(rates, np.repeat(expected, 2), rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_is_keras_own_over_written_out_targets(rng, smoothing):
    logits = rng.normal(size=(2, 5, 7)).astype("float32")
    targets = rng.integers(0, 7, (2, 5))
    weights = rng.random((2, 5)).astype("float32")
    loss = kc.training.CaptionCrossEntropy(smoothing)(targets, logits, weights)
    expected = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=smoothing
    )(ops.one_hot(targets, 7), logits, weights)
    np.testing.assert_allclose(float(loss), float(expected), rtol=1e-5)


def test_repeated_words_train_like_one_summed_gradient(rng):
    """Adam must see a word's gradient once, however often the word occurs."""
    embedding = kc.layers.WordEmbedding(6, 4)
    model = keras.Sequential([keras.Input((4,), dtype="int32"), embedding])
    model.compile(optimizer=keras.optimizers.Adam(0.1), loss="mse")
    tokens = np.array([[1, 1, 1, 2]])
    before = np.array(embedding(np.arange(6)))
    targets = before[tokens] - np.float32([[[3.0], [-1.0], [-1.0], [1.0]]])
    model.train_on_batch(tokens, targets)
    moved = np.array(embedding(np.arange(6))) - before
    # Adam's first step is the learning rate, in the direction of the gradient;
    # embeddings are scaled by sqrt(4).
    np.testing.assert_allclose(moved[1], [-0.2] * 4, rtol=1e-3)
    np.testing.assert_allclose(moved[2], [-0.2] * 4, rtol=1e-3)
    np.testing.assert_array_equal(moved[[0, 3, 4, 5]], 0.0)
