import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, read_oracle, tiny
from keras import ops

import keras_caption as kc
from keras_caption.text import BOS, EOS, PAD, UNK
from keras_caption.training import SelfCritical
from keras_caption.training.self_critical import compare
from keras_caption.training.self_critical_advice import SelfCriticalAdvice


def new_captioner(vocabulary_size=12, name="ngsan", **overrides):
    keras.utils.set_random_seed(0)
    sizes = tiny(name, **{"num_layers": 1, **overrides})
    return kc.models.create(name, vocabulary_size=vocabulary_size, **sizes)


def batch_of(rng, images=4, references=3, length=7, words=12):
    tokens = rng.integers(4, words, (images, references, length))
    lengths = rng.integers(2, length, (images, references, 1))
    places = np.arange(length)
    tokens = np.where(places < lengths, tokens, np.where(places == lengths, EOS, PAD))
    return {**random_images(rng, images), "references": tokens.astype("int32")}


def as_tensors(batch):
    return {name: tf.constant(value) for name, value in batch.items()}


def step_taken(trainer, batch):
    """What a step of SGD with rate 1 subtracts from the weights: the gradient."""
    trainer.compile(keras.optimizers.SGD(1.0), jit_compile=False)
    before = [v.numpy() for v in trainer.trainable_variables]
    trainer.train_on_batch(as_tensors(batch))
    after = [v.numpy() for v in trainer.trainable_variables]
    return [a - b for a, b in zip(before, after, strict=True)]


@pytest.mark.parametrize(("baseline", "share"), [("greedy", 0.0), ("mean", 0.3)])
def test_gradient_of_an_obviously_right_version(rng, baseline, share):
    batch = batch_of(rng, images=2)
    reward = kc.rewards.CiderD.from_references(batch["references"])
    model = new_captioner()
    trainer = SelfCritical(
        model,
        reward,
        baseline,
        samples=2,
        temperature=1.5,
        cross_entropy=share,
        max_length=6,
    )
    tokens, rewards, _ = trainer.explore(
        model.encode(model.read(batch)), batch["references"]
    )
    tokens = np.array(tokens).reshape(2, 2, 6)
    rewards = np.array(rewards).reshape(2, 2)
    greedy, _ = model.generate_tokens(batch, beam_size=1, max_length=6)
    greedy_rewards = np.array(reward(greedy, batch["references"]))

    def probabilities(image, caption, temperature):
        """Of every word at each place of one caption of one image."""
        one = {name: value[image : image + 1] for name, value in batch.items()}
        shown = np.array([[BOS, *caption[:-1]]], "int32")
        return ops.softmax(model({**one, "tokens": shown})[0] / temperature)

    def words_of(row):
        return [token for token in row.tolist() if token != PAD]

    with tf.GradientTape() as tape:
        terms, log_likelihoods = [], []
        for image, k in itertools.product(range(2), range(2)):
            other = greedy_rewards[image] if baseline == "greedy" else None
            other = rewards[image, 1 - k] if other is None else other
            caption = words_of(tokens[image, k])
            p = probabilities(image, caption, 1.5)
            for place, word in enumerate(caption):
                drawable = 1 - p[place, PAD] - p[place, BOS] - p[place, UNK]
                log_p = ops.log(p[place, word] / drawable)
                terms.append(-(rewards[image, k] - other) * log_p)
        for image, r in itertools.product(range(2), range(3)):
            caption = words_of(batch["references"][image, r])
            p = probabilities(image, caption, 1.0)
            for place, word in enumerate(caption):
                log_likelihoods.append(ops.log(p[place, word]))
        loss = (1 - share) * sum(terms) / len(terms)
        loss = loss - share * sum(log_likelihoods) / len(log_likelihoods)
    expected = tape.gradient(loss, model.trainable_variables)
    found = step_taken(trainer, batch)
    for variable, a, b in zip(model.trainable_variables, found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5, err_msg=variable.path)
    assert max(np.abs(a).max() for a in found) > 1e-3


def test_estimates_the_gradient_of_the_expected_reward(rng):
    """Every caption of a tiny model is tried, so the expectation is known."""
    model = new_captioner(vocabulary_size=6, dropout=0.5)
    words = [EOS, 4, 5]
    captions = [c for c in itertools.product(words, repeat=2) if c[0] != EOS]
    captions = np.array([*captions, (EOS, PAD)], "int32")
    values = np.arange(len(captions)) ** 2
    table = np.zeros((6, 6), "int32")  # a reward may be integers
    table[tuple(captions.T)] = values

    def reward(tokens, references):
        return ops.take(table.reshape(-1), tokens[:, 0] * 6 + tokens[:, 1])

    image = random_images(rng, 1)
    with tf.GradientTape() as tape:
        shown = np.pad(captions[:, :1], [(0, 0), (1, 0)], constant_values=BOS)
        logits = model({**image, "tokens": shown[None]})[0]
        logits = ops.where(np.isin(np.arange(6), [PAD, BOS, UNK]), -1e9, logits)
        log_p = ops.take_along_axis(ops.log_softmax(logits), captions[..., None], -1)
        real = (captions != PAD).astype("float32")
        p = ops.exp(ops.sum(log_p[..., 0] * real, axis=1))
        expected_reward = ops.sum(p * values.astype("float32"))
    true = tape.gradient(expected_reward, model.trainable_variables)
    mean_length = float(ops.sum(p * real.sum(1)))

    many = 4000
    batch = {name: np.repeat(x, many, axis=0) for name, x in image.items()}
    batch["references"] = np.zeros((many, 1, 1), "int32")
    trainer = SelfCritical(model, reward, samples=5, max_length=2)
    found = step_taken(trainer, batch)
    # The loss is a mean over tokens, the expectation one over captions.
    found = np.concatenate([-g.ravel() * mean_length for g in found])
    true = np.concatenate([np.ravel(ops.convert_to_numpy(g)) for g in true])
    assert np.linalg.norm(found - true) < 0.05 * np.linalg.norm(true)


def test_baselines_and_loss_of_the_toolkits_oracle():
    data = read_oracle("scst_reward")
    samples = data["score_samples"].reshape(4, 5)
    with_greedy = np.concatenate([data["score_greedy"][:, None], samples], axis=1)

    # There, 0 is EOS and padding, and words begin at 1.
    logits = np.full((20, 16, 43), -1e9, "float32")
    logits[..., 4:] = data["logp"][..., 1:]
    logits[..., EOS] = data["logp"][..., 0]
    tokens = np.where(data["samples"] > 0, data["samples"] + 3, EOS)
    tokens = np.where(data["mask"] > 0, tokens, PAD).astype("int32")

    class Given(keras.Model):
        def logits(self, tokens, memory):
            return memory

    for kind, rewards, baselines, loss in (
        ("greedy", with_greedy, samples - data["scst_reward"].reshape(4, 5), "scst"),
        ("mean", samples, data["nsc_baseline"], "nsc"),
    ):
        rewards, found = compare(ops.convert_to_tensor(rewards), kind)
        np.testing.assert_allclose(found, baselines, atol=1e-5)
        advantages = ops.cast(ops.reshape(rewards - found, (-1,)), "float32")
        trainer = SelfCritical(Given(), None, kind)
        value, _ = trainer.loss_of(logits, tokens, advantages)
        np.testing.assert_allclose(value, data[f"{loss}_loss"], rtol=1e-4)


def test_draws_follow_the_probabilities(rng):
    log_probs = np.log(rng.dirichlet(np.ones(8), size=8)).astype("float32")

    class Markov:
        def start(self, memory, length):
            return {"memory": None, "cache": ops.zeros((2, 1))}

        def step(self, tokens, state, index):
            return ops.take(log_probs, tokens, axis=0), state

    numbers = rng.random((2 * 4000, 3)).astype("float32")
    three = kc.decoding.Decoding(max_length=3, temperature=1.0)
    tokens, _ = kc.decoding.sample(Markov(), None, numbers, three, first_is_greedy=True)
    tokens = np.array(tokens)
    greedy, _ = kc.decoding.greedy_search(Markov(), None, three)
    np.testing.assert_array_equal(tokens[[0, 4000]], greedy)
    expected = np.exp(log_probs[BOS])
    expected[[0, 1, 3]] = 0
    shares = np.bincount(tokens[:, 0], minlength=8) / len(tokens)
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.02)


@pytest.mark.parametrize("name", ["ngsan", "aoanet"])
def test_the_whole_step_compiles_with_xla(rng, monkeypatch, name):
    batch = batch_of(rng)
    numbers = rng.random((4 * 3, 6)).astype("float32")
    monkeypatch.setattr(SelfCritical, "_numbers", lambda *args: numbers)
    reward = kc.rewards.CiderD.from_references(batch["references"])
    weights = {}
    for jit in (False, True):
        model = new_captioner(name=name)
        trainer = SelfCritical(model, reward, samples=2, max_length=6)
        trainer.compile(keras.optimizers.SGD(0.1), jit_compile=jit)
        for _ in range(2):
            logs = trainer.train_on_batch(as_tensors(batch), return_dict=True)
        assert set(logs) == {
            "loss", "reward", "baseline", "advantage", "length", "entropy"
        }  # fmt: skip
        weights[jit] = model.get_weights()
    for a, b in zip(weights[False], weights[True], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_training_raises_the_reward_and_saves_with_the_captioner(rng, tmp_path):
    batch = batch_of(rng, images=4)
    reward = kc.rewards.CiderD.from_references(batch["references"])
    model = new_captioner()
    trainer = SelfCritical(model, reward, "mean", samples=10, max_length=8)
    trainer.compile(keras.optimizers.Adam(5e-3), jit_compile=False)
    data = tf.data.Dataset.from_tensors(as_tensors(batch)).repeat()
    done = trainer.fit(data, epochs=4, steps_per_epoch=15, verbose=0).history
    assert done["reward"][-1] > done["reward"][0] + 0.3
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert int(loaded.optimizer.iterations) == 60


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_trains(rng, policy):
    batch = batch_of(rng)
    model = new_captioner(dtype=policy)
    before = model.get_weights()
    reward = kc.rewards.CiderD.from_references(batch["references"])
    trainer = SelfCritical(model, reward, samples=2, max_length=6)
    trainer.compile(keras.optimizers.Adam(1e-3), jit_compile=False)
    logs = trainer.train_on_batch(as_tensors(batch), return_dict=True)
    assert np.isfinite(list(logs.values())).all()
    after = model.get_weights()
    assert all(np.isfinite(weights).all() for weights in after)
    assert any((a != b).any() for a, b in zip(before, after, strict=True))


def test_a_reward_that_is_not_finite_ends_training(rng, tmp_path):
    batch = batch_of(rng)
    model = new_captioner()

    def reward(tokens, references):
        late = trainer.optimizer.iterations >= 3
        return ops.cast(ops.where(late, np.nan, tokens[:, 0]), "float32")

    trainer = SelfCritical(model, reward, samples=2, max_length=3)
    trainer.compile(trainer.optimizer, jit_compile=False)
    data = tf.data.Dataset.from_tensors(as_tensors(batch)).repeat()
    with pytest.raises(kc.InputError, match="The loss is nan at step 2 of epoch 2"):
        trainer.fit(
            data,
            epochs=2,
            steps_per_epoch=2,
            verbose=0,
            callbacks=[
                kc.training.StopIfNotFinite(),
                kc.training.Checkpoint(tmp_path, monitor="reward"),
            ],
        )
    last = keras.models.load_model(tmp_path / "last.keras")
    assert all(np.isfinite(weights).all() for weights in last.get_weights())


def test_advice_names_what_logs_show(capsys):
    fine = {"reward": 1.0, "entropy": 0.8, "length": 9.0, "val_cider": 100.0}

    def said(*changes, history=()):
        advice = SelfCriticalAdvice(20, "val_cider", [{**fine, **x} for x in history])
        for epoch, change in enumerate(changes):
            advice.on_epoch_end(epoch, {**fine, **change})
        return [x for x in capsys.readouterr().out.splitlines() if x]

    epochs = range(6)
    assert said(*({"reward": 1 + i / 9, "val_cider": 90 + i} for i in epochs)) == []
    [note] = said({}, {"entropy": 0.01}, {"entropy": 0.001})
    assert note.startswith("note: the samples have 0.010 nats a token")
    [note] = said({"length": 19.5}, {"length": 20.0})
    assert "have 19.5 tokens of 20 at most: they do not end" in note
    [note] = said(*({"reward": -i} for i in epochs))
    assert "the reward has fallen for 3 epochs" in note
    worse = [{"reward": i, "val_cider": 99 - i} for i in epochs]
    [note] = said(*worse)
    assert "risen for 3 epochs in which val_cider fell" in note
    assert said(*worse[4:], history=worse[:4]) == []  # it was said before
    assert len(said(*worse[3:], history=worse[:3])) == 1


def test_mistakes_are_named(rng):
    model = new_captioner()
    reward = kc.rewards.CiderD.from_references(batch_of(rng)["references"])
    with pytest.raises(ValueError, match="one of greedy, mean"):
        SelfCritical(model, reward, "gredy")
    with pytest.raises(ValueError, match="'mean' needs 2 samples"):
        SelfCritical(model, reward, "mean", samples=1)
    with pytest.raises(ValueError, match="dicts that hold references"):
        SelfCritical(model, reward).train_on_batch(as_tensors(random_images(rng)))
    for wrong in (lambda *_: 0.5, lambda *_: ops.zeros(4), lambda *_: "good"):
        trainer = SelfCritical(model, wrong, samples=2, max_length=3)
        with pytest.raises(kc.InputError, match=r"^The reward .* each of 12 captions"):
            trainer.train_on_batch(as_tensors(batch_of(rng)))
    for number in ("samples", "temperature", "max_length"):
        with pytest.raises(kc.InputError, match=f"`{number}`"):
            SelfCritical(model, reward, **{number: 0})
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(kc.InputError, match="`cross_entropy`"):
            SelfCritical(model, reward, cross_entropy=share)
