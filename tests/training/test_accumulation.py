"""Updates of several batches are those of one batch with all their examples."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny

import keras_caption as kc

LENGTHS = (9, 1, 4, 4, 7)  # tokens of each example
PARTS = (slice(0, 1), slice(1, 2), slice(2, 5))


@pytest.fixture(scope="module")
def captions():
    """Images with captions of very different lengths."""
    rng = np.random.default_rng(0)
    tokens = np.zeros((len(LENGTHS), 1, 1 + max(LENGTHS)), "int32")
    for row, length in zip(tokens, LENGTHS, strict=True):
        row[0, 0], row[0, 1 : length + 1] = 1, rng.integers(4, 9, length)
    return {**random_images(rng, len(LENGTHS)), "tokens": tokens}


def batch_of(captions, part):
    """A batch without the positions that are padding in all of it."""
    longest = max(LENGTHS[part])
    batch = {name: x[part] for name, x in captions.items()}
    batch["tokens"] = batch["tokens"][..., : longest + 1]
    return kc.text.teacher_forcing(batch)


def model_of(optimizer):
    keras.utils.set_random_seed(1)
    sizes = tiny("ngsan", num_layers=1)
    model = kc.models.create("ngsan", vocabulary_size=9, dropout=0.0, **sizes)
    loss = kc.training.SequenceCrossEntropy(0.1)
    model.compile(optimizer, loss, jit_compile=False)
    model.run_eagerly = True  # one step each
    return model


def test_an_update_is_that_of_one_large_batch(captions):
    """Clipped and smoothed, of batches of 9, 1 and 15 tokens."""
    whole, parts = (
        model_of(keras.optimizers.SGD(1.0, global_clipnorm=0.5)) for _ in range(2)
    )
    before = whole.get_weights()
    batches = tuple(batch_of(captions, part) for part in PARTS)
    large = batch_of(captions, slice(0, 5))
    data = tf.data.Dataset.from_tensors(batches)
    trainer = kc.training.AccumulatingTrainer(parts)
    trainer.run_eagerly = True
    history = trainer.fit(data, verbose=0).history
    losses = whole.loss(large[1], whole(large[0]), large[2])
    np.testing.assert_allclose(history["loss"], [float(losses)], rtol=1e-5)
    whole.train_on_batch(*large)
    assert int(parts.optimizer.iterations) == 1
    changes = (
        [np.float64(w) - b for w, b in zip(m.get_weights(), before, strict=True)]
        for m in (whole, parts)
    )
    for expected, change in zip(*changes, strict=True):
        np.testing.assert_allclose(change, expected, atol=1e-6)


class Bias(keras.Model):
    """Logits that are a variable, times the inputs."""

    def __init__(self):
        super().__init__()
        self.bias = self.add_weight(shape=(5,), initializer="zeros")
        self.built = True

    def call(self, inputs, training=None):
        return keras.ops.expand_dims(inputs, -1) * self.bias


@pytest.mark.parametrize("weighted", [True, False])
def test_an_update_is_the_mean_over_all_tokens(weighted):
    """Of 1 and 9 tokens, where the mean of the batches' means is 44 % off."""
    model = Bias()
    model.compile(keras.optimizers.SGD(1.0), kc.training.SequenceCrossEntropy())
    targets = [np.array([[3]]), np.array([[4, 2, 2, 4, 4, 2, 4, 4, 4]])]
    batches = tuple(
        (np.ones(y.shape, "float32"), y, np.ones(y.shape, bool))[: 2 + weighted]
        for y in targets
    )
    data = tf.data.Dataset.from_tensors(batches)
    kc.training.AccumulatingTrainer(model).fit(data, verbose=0)
    shares = np.bincount(np.concatenate(targets, 1)[0], minlength=5) / 10
    np.testing.assert_allclose(model.bias, shares - np.full(5, 0.2), atol=1e-6)


def test_an_overflow_skips_the_whole_update():
    model = Bias()
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0))
    model.compile(optimizer, kc.training.SequenceCrossEntropy())
    trainer = kc.training.AccumulatingTrainer(model)
    targets = np.array([[3]])
    for values, updates in ((np.inf, 0), (1.0, 1)):
        x = np.ones((1, 1), "float32")
        data = tf.data.Dataset.from_tensors(((x, targets), (values * x, targets)))
        trainer.fit(data, verbose=0)
        assert int(model.optimizer.iterations) == updates
        assert np.isfinite(model.bias).all()
        assert np.any(model.bias) == updates


@pytest.mark.parametrize("scaled", [False, True])
def test_means_of_batches_are_refused(captions, scaled):
    optimizer = keras.optimizers.Adam(gradient_accumulation_steps=2)
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model = model_of(optimizer)
    trainer = kc.training.SelfCritical(model, lambda captions, references: 0.0)
    trainer.compile(optimizer)
    for trained in (model, trainer):
        with pytest.raises(kc.InputError, match="gradient_accumulation_steps=2"):
            trained.fit(tf.data.Dataset.from_tensors(batch_of(captions, PARTS[0])))


def test_groups_hold_batches_of_any_shape(monkeypatch):
    batches = tf.data.Dataset.range(1, 6).map(lambda n: ({"x": tf.fill([n], n)}, n))
    groups = [*kc.batches.grouped(batches, 2).as_numpy_iterator()]
    assert [[int(n) for _, n in group] for group in groups] == [[1, 2], [3, 4]]
    assert [x["x"].tolist() for x, _ in groups[1]] == [[3] * 3, [4] * 4]
    said = []  # by AutoGraph
    monkeypatch.setattr(
        tf.get_logger(), "warning", lambda *text, **_: said.append(text)
    )
    epochs = tf.data.Dataset.range(2).flat_map(lambda _: kc.batches.grouped(batches, 2))
    assert len(epochs.element_spec) == 2
    assert not said
