import gc
import json
import resource
import types
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from keras import ops
from tensorflow.python.framework import ops as gradients

import keras_caption as kc
from keras_caption.training import phases
from keras_caption.training.early_stopping import has_stalled
from keras_caption.training.run_directory import RunDirectory


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
    loss_of = kc.training.SequenceCrossEntropy(smoothing)
    variable = tf.Variable(logits, dtype="float32")
    with tf.GradientTape() as tape:
        loss = loss_of(targets, variable, weights.astype("float32"))
    gradient = tape.gradient(loss, variable)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses, of_logits = np.zeros((2, 5)), np.exp(log_probs)
    for place in np.ndindex(2, 5):
        expected = np.full(9, smoothing / 6)
        expected[[0, 1]] = 0
        expected[targets[place]] = 1 - smoothing
        assert np.isclose(expected.sum(), 1)
        losses[place] = -expected @ log_probs[place]
        of_logits[place] -= expected
    expected = np.average(losses, weights=weights)
    np.testing.assert_allclose(float(loss), expected, rtol=1e-5)
    of_logits *= weights[..., None] / weights.sum()
    np.testing.assert_allclose(gradient, of_logits, atol=1e-6)
    for compiles in False, True:

        @tf.function(jit_compile=compiles)
        def in_graph():
            with tf.GradientTape() as tape:
                loss = loss_of(targets, variable, weights.astype("float32"))
            return loss, tape.gradient(loss, variable)

        loss, gradient = in_graph()
        np.testing.assert_allclose(float(loss), expected, rtol=1e-5)
        np.testing.assert_allclose(gradient, of_logits, atol=1e-6)


def test_trained_models_are_forgotten(vocabulary, rng):
    """TensorFlow keeps the graph of each gradient that it registers."""

    def registered():
        return [*gradients.gradient_registry._registry]

    before = registered()

    def train():
        model = kc.models.create("ngsan", vocabulary=vocabulary, **tiny("ngsan"))
        model.compile("sgd", kc.training.SequenceCrossEntropy(0.1), jit_compile=False)
        tokens = rng.integers(4, 34, (3, 1, 6)).astype("int32")
        batch = {**random_images(rng), "tokens": tokens}
        model.train_on_batch(*kc.text.teacher_forcing(batch))
        return weakref.ref(model.encoder)

    forgotten = train()
    gc.collect()
    assert forgotten() is None
    assert not [name for name in registered() if name not in before]


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
    memory = model.encode(model.read(images))
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
        # Each replaced token is sampled given the tokens before it.
        logits = model({**images, "tokens": shown.reshape(3, 2, 5)})
        p = np.exp(kc.decoding.policy(ops.reshape(logits, (6, 5, -1))))
        passed = p.cumsum(-1) <= numbers[..., None] * p.sum(-1, keepdims=True)
        sampled = passed.sum(-1)[:, :-1]
        replaced = ~kept[:, 1:]
        np.testing.assert_array_equal(shown[:, 1:][replaced], sampled[replaced])

    model.compile(model.optimizer, loss=model.loss, jit_compile=False)
    schedule = kc.training.ScheduledSampling(1, 1.0, increase_every=1, maximum=1.0)
    trainer = kc.training.ScheduledSamplingTrainer(model, schedule)
    batch = kc.text.teacher_forcing({**images, "tokens": tokens})
    losses = [trainer.train_on_batch(*batch) for _ in range(2)]
    assert np.isfinite(losses).all()
    assert int(model.optimizer.iterations) == 2
    kept = (trainer.sample(batch[0]) == batch[0]["tokens"]).numpy()
    assert kept[..., 0].all()
    assert not kept[..., 1:].all()


def test_resumed_scheduled_sampling_is_uninterrupted(rng, tmp_path):
    tokens = rng.integers(4, 9, (3, 2, 6)).astype("int32")
    batch = kc.text.teacher_forcing({**random_images(rng), "tokens": tokens})
    data = tf.data.Dataset.from_tensors(batch).repeat()

    def train(model, initial_epoch):
        trainer = kc.training.ScheduledSamplingTrainer(model, lambda step: 0.5)
        trainer.compile(model.optimizer, model.loss, run_eagerly=True)
        for epoch in range(initial_epoch, 2):
            trainer.fit(
                data,
                initial_epoch=epoch,
                epochs=epoch + 1,
                steps_per_epoch=2,
                verbose=0,
                shuffle=False,
                callbacks=[kc.training.EpochSeeds(0)],
            )
            model.save(tmp_path / f"{initial_epoch}_{epoch}.keras")

    sizes = tiny("aoanet", num_layers=1)
    train(kc.models.create("aoanet", vocabulary_size=9, **sizes), 0)
    train(keras.models.load_model(tmp_path / "0_0.keras"), 1)
    whole, resumed = (
        keras.models.load_model(tmp_path / f"{start}_1.keras") for start in (0, 1)
    )
    for a, b in zip(whole.get_weights(), resumed.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    optimizers = whole.optimizer.variables, resumed.optimizer.variables
    for a, b in zip(*optimizers, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kc.training.WarmupStepDecay(1, -1e-3), "`learning_rate`: .* -0.001"),
        (lambda: kc.training.WarmupStepDecay(1, float("nan")), "`learning_rate`"),
        (lambda: kc.training.WarmupStepDecay(0), "`steps_per_epoch`"),
        (lambda: kc.training.ScheduledSampling(1, increase=2.0), "`increase`"),
        (lambda: kc.training.SequenceCrossEntropy(2), "`label_smoothing`"),
        (lambda: kc.models.create("san", vocabulary_size=9, num_layers=0), "layers`"),
        (lambda: kc.models.create("san", vocabulary_size=9, num_heads=0), "heads`"),
        (lambda: kc.models.create("area", vocabulary_size=9, dropout=1.5), "dropout`"),
        (lambda: kc.models.create("aoanet", vocabulary_size=9, dropout=-1), "dropout`"),
        (lambda: kc.models.NGSAN(vocabulary_size=0), "`vocabulary_size`"),
        (lambda: kc.text.Vocabulary.build(["a dog"], min_count=0), "`min_count`"),
        (lambda: kc.text.Vocabulary.build(["a dog"], min_count=2), "min_count=2 times"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with pytest.raises(kc.InputError, match=message):
        make()


def test_numpy_numbers_are_numbers():
    schedule = kc.training.WarmupStepDecay(np.int64(1), np.float32(0.5), np.int32(1))
    assert float(schedule(0)) == 0.5


HISTORY = [
    {"epoch": 1, "iterations": 3, "loss": 2.0, "val_cider": 50.0, "scale": 100},
    {"epoch": 2, "iterations": 6, "loss": 1.0, "val_cider": 75.0, "scale": 100},
]


@pytest.mark.parametrize(("steps", "epochs"), [(3, 1), (6, 2)])
def test_resumes_after_the_epoch_of_the_optimizers_step(tmp_path, steps, epochs):
    (tmp_path / "history.json").write_text(json.dumps(HISTORY))
    checkpoint = kc.training.Checkpoint(tmp_path)
    assert checkpoint.resume(trained(steps)) == epochs
    assert checkpoint.history == HISTORY[:epochs]


def test_validation_is_in_the_scale_of_papers_and_notes_outputs_once(capsys):
    captions = {1: "a with a a", 2: "a with a a"}
    references = {1: ["a dog runs"], 2: ["a cat with a hat"]}
    model = types.SimpleNamespace(caption=lambda *_, **options: captions)
    callback = kc.training.CaptionValidation([], references)
    callback.set_model(model)
    for epoch in range(2):
        logs = {}
        callback.on_epoch_end(epoch, logs)
        assert logs["val_cider"] == 100 * kc.evaluation.cider(captions, references) > 0
    printed = capsys.readouterr().out
    assert printed.count("note: of 2 validation captions, 2 are alike") == 1
    model.translate = lambda *_, **options: ["", "a cat on a hat"]
    callback = kc.training.TranslationValidation(["", ""], ["a dog", "a cat on a hat"])
    callback.set_model(model)
    callback.on_epoch_end(0, logs)
    assert logs["val_exact"] == 50.0
    assert logs["val_bleu"] > 1
    assert "of 2 validation translations, 1 are empty" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("history", "steps"),
    [
        (HISTORY, 0),  # the optimizer's step is that of no epoch
        (HISTORY, 4),
        (HISTORY[1:], 6),
        ([], 6),
        ([{**row, "iterations": None} for row in HISTORY], 6),
        ([{**row, "loss": "small"} for row in HISTORY], 6),
        ([{"epoch": 1, "iterations": 3}], 3),
        (None, 6),
        ({"epoch": 1}, 6),
    ],
)
def test_a_history_that_does_not_fit_is_refused(tmp_path, history, steps):
    (tmp_path / "history.json").write_text(json.dumps(history))
    with pytest.raises(kc.InputError, match=r"history\.json"):
        kc.training.Checkpoint(tmp_path).resume(trained(steps))


def trained(steps):
    """A model whose optimizer has done some steps."""
    optimizer = keras.optimizers.SGD()
    weight = keras.Variable([0.0])
    for _ in range(steps):
        optimizer.apply([weight.value], [weight])
    return types.SimpleNamespace(optimizer=optimizer)


def test_a_run_without_an_update_is_no_success(tmp_path):
    task = types.SimpleNamespace(
        config={"seed": 0, "training": {"epochs": 1}},
        monitor="val_cider",
        validation=lambda model: keras.callbacks.Callback(),
        train_batches=lambda *_: None,
        steps_per_epoch=lambda *_: 1,
        summaries=lambda *_: None,
    )
    directory = RunDirectory(tmp_path, {"objective": "cross-entropy"})
    trainer = trained(0)
    trainer.fit = lambda *_, **options: None
    with pytest.raises(kc.InputError, match="made no update"):
        phases.fit(task, directory, tf.distribute.get_strategy(), trainer, 0)


def test_a_full_disk_under_the_logs_ends_training(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    logs = kc.training.TensorBoardLogs(tmp_path / "logs")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="error") as caught:
            model.fit(np.ones((1, 1)), np.ones((1, 1)), verbose=0, callbacks=[logs])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == str(tmp_path / "logs")


class Validated(keras.callbacks.Callback):
    """A validation whose score is a weight of the model."""

    def on_epoch_end(self, epoch, logs=None):
        logs["val_cider"] = float(self.model.get_weights()[0].flat[0])


def test_the_mean_of_the_last_epochs_is_validated_and_kept(tmp_path):
    keras.utils.set_random_seed(0)
    model = kc.models.create("ngsan", vocabulary_size=9, **tiny("ngsan", num_layers=1))
    model.compile("sgd")
    checkpoint = kc.training.Checkpoint(tmp_path)

    def epoch_of_weights(epoch, value):
        logs = {}
        model.set_weights([np.full(w.shape, value) for w in model.weights])
        callback = kc.training.AveragedValidation(Validated(), checkpoint, 3)
        for part in (callback, checkpoint):  # anew, as in a resumed run
            part.set_model(model)
            part.on_epoch_end(epoch, logs)
        return logs["val_cider"]

    values = [1.0, 2.0, 6.0, 4.0, 2.0]
    means = [epoch_of_weights(*pair) for pair in enumerate(values)]
    np.testing.assert_allclose(means, [1, 1.5, 3, 4, 4], rtol=1e-6)
    for name, value in (("best", 4.0), ("last", 2.0)):
        kept = keras.models.load_model(tmp_path / f"{name}.keras")
        assert all((weight == value).all() for weight in kept.get_weights())
    files = sorted((tmp_path / "weights").iterdir())
    assert [path.name for path in files] == [f"epoch_{i}.npz" for i in (3, 4, 5)]
    files[-1].write_bytes(files[-1].read_bytes()[:99])
    with pytest.raises(kc.InputError, match=r"epoch_5\.npz cannot be read"):
        epoch_of_weights(5, 1.0)
    (tmp_path / "best.keras").unlink()
    checkpoint.history = [{"val_cider": np.nan}]  # than which any score is better
    checkpoint.on_epoch_end(1, {"val_cider": 1.0})
    assert (tmp_path / "best.keras").exists()


@pytest.mark.parametrize(
    ("monitor", "values", "patience", "stalled"),
    [
        ("val_bleu", [0.1, 0.3, 0.2], 1, True),
        ("val_bleu", [0.1, 0.3, 0.2], 2, False),
        ("val_bleu", [0.1, 0.1, 0.1], 2, True),  # equal is not better
        ("val_loss", [3.0, 2.0, 1.0], 1, False),
        ("val_loss", [3.0, 1.0, 2.0], 1, True),
        ("val_loss", [3.0, 1.0, 2.0], 0, False),
        ("val_loss", [], 1, False),
        ("val_loss", [np.nan, 3.0, 2.0], 1, False),  # NaN is worse than any value
        ("val_bleu", [np.nan, np.nan], 1, True),
    ],
)
def test_stalls_after_so_many_epochs_without_a_better_value(
    monitor, values, patience, stalled
):
    history = [{monitor: value} for value in values]
    assert has_stalled(history, monitor, patience) == stalled


def test_validation_loss_is_the_mean_over_all_tokens(rng):
    model = kc.models.create("ngsan", vocabulary_size=9, **tiny("ngsan", num_layers=1))
    model.compile("sgd", kc.training.SequenceCrossEntropy(0.1))
    tokens = rng.integers(4, 9, (3, 2, 6)).astype("int32")
    tokens[0, :, 3:] = 0  # batches of different numbers of tokens
    images = random_images(rng)
    batches = [
        kc.text.teacher_forcing(
            {**{k: x[part] for k, x in images.items()}, "tokens": tokens[part]}
        )
        for part in (slice(0, 1), slice(1, 3))
    ]
    inputs, targets, weights = kc.text.teacher_forcing({**images, "tokens": tokens})
    expected = model.loss(targets, model(inputs), weights)
    loss = kc.training.ValidationLoss(model, batches)
    np.testing.assert_allclose(loss(), float(expected), rtol=1e-5)
    model.set_weights([0 * weight for weight in model.get_weights()])
    np.testing.assert_allclose(loss(), np.log(9), rtol=1e-5)
