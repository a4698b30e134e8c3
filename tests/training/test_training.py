import keras
import numpy as np
import pytest
from conftest import random_images, tiny
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
def test_smoothed_cross_entropy_is_that_of_the_released_code(rng, smoothing):
    """1 - s at the true token; s among the others but PAD and BOS, evenly."""
    logits = rng.normal(size=(2, 5, 9))
    targets = rng.integers(2, 9, (2, 5))
    weights = rng.random((2, 5))
    loss = kc.training.CaptionCrossEntropy(smoothing)(
        targets, logits.astype("float32"), weights.astype("float32")
    )
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = np.zeros((2, 5))
    for place in np.ndindex(2, 5):
        expected = np.full(9, smoothing / 6)
        expected[[0, 1]] = 0
        expected[targets[place]] = 1 - smoothing
        assert np.isclose(expected.sum(), 1)
        losses[place] = -expected @ log_probs[place]
    np.testing.assert_allclose(float(loss), (losses * weights).mean(), rtol=1e-5)


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


def test_scheduled_sampling_is_aoanets():
    schedule = kc.training.ScheduledSampling(steps_per_epoch=10)
    rates = [float(schedule(10 * epoch + 9)) for epoch in (0, 4, 5, 9, 10, 49, 60)]
    np.testing.assert_allclose(rates, [0, 0, 0.05, 0.05, 0.1, 0.45, 0.5], rtol=1e-6)


@pytest.mark.parametrize("name", ["ngsan", "aoanet"])
def test_words_are_the_models_own_as_often_as_scheduled(rng, vocabulary, name):
    sizes = tiny(name, num_layers=1)
    model = kc.models.create(name, vocabulary=vocabulary, **sizes)
    images = random_images(rng)
    tokens = np.array([[[1, 5, 6, 7, 0], [1, 8, 9, 0, 0]]] * 3, "int32")
    flat = tokens.reshape(6, 5)
    memory = model.encode(images)
    coins, numbers = rng.random((2, 6, 5)).astype("float32")
    for probability in (0.0, 0.5, 1.0):
        shown = np.array(
            kc.decoding.scheduled_sampling(
                model, memory, flat, coins, numbers, probability
            )
        )
        kept = (coins >= probability) | (flat == 0)
        kept[:, 0] = True
        np.testing.assert_array_equal(shown[kept], flat[kept])
        # What replaces a word is drawn from what the words before it lead to.
        logits = model({**images, "tokens": shown.reshape(3, 2, 5)})
        p = np.exp(kc.decoding.policy(ops.reshape(logits, (6, 5, -1))))
        passed = p.cumsum(-1) <= numbers[..., None] * p.sum(-1, keepdims=True)
        drawn = passed.sum(-1)[:, :-1]
        replaced = ~kept[:, 1:]
        np.testing.assert_array_equal(shown[:, 1:][replaced], drawn[replaced])

    model.scheduled_sampling = kc.training.ScheduledSampling(1, increase_every=1)
    losses = [model.train_on_batch({**images, "tokens": tokens}) for _ in range(2)]
    assert np.isfinite(losses).all()
