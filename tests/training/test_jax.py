"""Training on JAX, on one device and on several, as TensorFlow trains on one."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras_caption.objects import CATEGORIES

import keras_caption as kc
from keras_caption.decoding import Decoding
from keras_caption.text import EOS, PAD

IMAGES, STEPS = 8, 4  # images of a batch, which four devices share; and its updates
SHARED = (1, 4)  # numbers of devices
WORDS = kc.text.Vocabulary.build(
    ["a cat cats two people person on the street road table with and cup is near"],
    min_count=1,
)
TINY = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}


def captions(rng, count=3, length=8):
    """Random captions from BOS to EOS, of very different lengths."""
    tokens = rng.integers(4, len(WORDS), (IMAGES, count, length))
    ends = rng.integers(2, length, (IMAGES, count, 1))
    places = np.arange(length)
    tokens = np.where(places < ends, tokens, np.where(places == ends, EOS, PAD))
    tokens[:, :, 0] = 1
    return tokens.astype("int32")


def objects(rng):
    """Images of up to four objects of COCO's categories."""
    names = rng.choice(["cat", "person", "cup", "dining table"], (IMAGES, 4))
    kinds = [[CATEGORIES.index(name) for name in row] for row in names]
    mask = np.arange(4) < rng.integers(1, 5, (IMAGES, 1))
    corners = np.sort(rng.random((IMAGES, 4, 2, 2)), axis=2)
    return {
        "regions": np.eye(len(CATEGORIES), dtype="float32")[kinds] * mask[..., None],
        "boxes": corners.reshape(IMAGES, 4, 4).astype("float32"),
        "region_mask": mask,
    }


def optimizer():
    # Clipped, and with a large epsilon: no rounding error may become a step.
    return keras.optimizers.Adam(1e-2, epsilon=1e-3, global_clipnorm=0.1)


def captioner(name, weights, case, **more):
    model = kc.models.create(name, vocabulary=WORDS, dropout=0.0, **TINY | more)
    return with_weights(model, weights, case)


def with_weights(model, weights, case):
    """The model with the same weights on each backend, whose random numbers differ."""
    path = f"{weights}/{case}_before.npz"
    if keras.backend.backend() == "tensorflow":
        np.savez(path, *model.get_weights())
    with np.load(path) as before:
        model.set_weights([*before.values()])
    return model


def self_critical(weights, rng):
    """Greedy baseline, three rewards, and samples with evidence."""
    model = captioner(
        "ngsan", weights, "self_critical", region_dim=80, categories=[*CATEGORIES]
    )
    model.decoding = Decoding(evidence=True)
    tokens = captions(rng)[:, :, 1:]
    rewards = [
        kc.rewards.CiderD.from_references(tokens),
        kc.rewards.ObjectTruth(WORDS),
        kc.rewards.PlaceTruth(WORDS),
    ]
    reward = kc.rewards.WeightedSum(rewards, [1.0, 2.0, 0.5])
    trainer = kc.training.SelfCritical(model, reward, samples=2, max_length=6)
    trainer.compile(optimizer())
    return trainer, model, {**objects(rng), "references": tokens}


def self_consensus(weights, rng):
    """The baseline of other samples, of an LSTM, beside cross-entropy."""
    model = captioner("aoanet", weights, "self_consensus", region_dim=80)
    tokens = captions(rng)[:, :, 1:]
    truth = kc.synthetic.scenes.StatementTruth(WORDS)
    reward = kc.rewards.WeightedSum([kc.rewards.SentenceBleu(), truth], [1.0, 2.0])
    trainer = kc.training.SelfCritical(
        model, reward, "mean", samples=2, max_length=6, cross_entropy=0.2
    )
    trainer.compile(optimizer())
    facts = {
        "properties": rng.integers(0, 3, (IMAGES, 4, 5)).astype("int32"),
        "relations": rng.random((IMAGES, 4, 4, 11)) < 0.5,
        "statements": rng.random(IMAGES, "float32"),
    }
    return trainer, model, {**objects(rng), **facts, "references": tokens}


def cross_entropy(weights, rng, case="cross_entropy"):
    model = captioner("ngsan", weights, case, region_dim=80)
    model.compile(optimizer(), loss=model.loss)
    batch = {**objects(rng), "tokens": captions(rng)}
    inputs, targets, valid = kc.text.teacher_forcing(batch)
    return (
        model,
        model,
        tuple(
            keras.tree.map_structure(np.asarray, x) for x in (inputs, targets, valid)
        ),
    )


def accumulated(weights, rng):
    """One update by two batches that have different numbers of tokens."""
    _, model, batch = cross_entropy(weights, rng, "accumulated")

    def half(rows):
        return keras.tree.map_structure(lambda x: x[rows], batch)

    groups = half(slice(4)), half(slice(4, None))
    return kc.training.AccumulatingTrainer(model), model, groups


def sampled(weights, rng):
    """Scheduled sampling that replaces nothing, which draws no random numbers."""
    _, model, batch = cross_entropy(weights, rng, "sampled")
    trainer = kc.training.ScheduledSamplingTrainer(model, lambda step: 0.0)
    return trainer, model, batch


CASES = (self_critical, self_consensus, cross_entropy, accumulated, sampled)
ON_SEVERAL = (self_critical, cross_entropy)


def train(case, weights):
    """Trains a case for some steps; returns its weights and logs."""
    trainer, model, batch = case(weights, np.random.default_rng(0))
    done = trainer.fit(forever(batch), steps_per_epoch=STEPS, shuffle=False, verbose=0)
    logs = {name: values[-1] for name, values in done.history.items()}
    return {str(i): x for i, x in enumerate(model.get_weights())} | logs


def forever(batch):
    return tf.data.Dataset.from_tensors(batch).repeat()


def main(weights):
    """Trains all cases on JAX, with four virtual devices."""
    devices = keras.distribution.list_devices()
    assert len(devices) == max(SHARED)
    for count in SHARED:
        if count > 1:
            shared = keras.distribution.DataParallel(devices=devices[:count])
            keras.distribution.set_distribution(shared)
        for case in CASES if count == 1 else ON_SEVERAL:
            np.savez(f"{weights}/{case.__name__}_{count}.npz", **train(case, weights))
    keras.distribution.set_distribution(None)
    # What is sampled is trained on: other weights, and finite ones.
    _, model, batch = cross_entropy(weights, np.random.default_rng(0), "sampled")
    trainer = kc.training.ScheduledSamplingTrainer(model, lambda step: 1.0)
    trainer.fit(forever(batch), steps_per_epoch=STEPS, verbose=0)
    np.savez(f"{weights}/replaced.npz", *model.get_weights())
    state = [int(x) for x in np.asarray(trainer.seeds.state.value)]
    print(json.dumps({"drawn": state[1]}))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("jax")
    for case in CASES:
        np.savez(f"{folder}/{case.__name__}_tensorflow.npz", **train(case, folder))
    flags = f"--xla_force_host_platform_device_count={max(SHARED)}"
    done = subprocess.run(
        [sys.executable, __file__, str(folder)],
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("case", "devices"),
    [
        *((case.__name__, 1) for case in CASES),
        *((case.__name__, count) for case in ON_SEVERAL for count in SHARED[1:]),
    ],
)
def test_jax_trains_as_tensorflow(trained, case, devices):
    folder, _ = trained
    before, one, two = (
        dict(np.load(folder / f"{case}_{name}.npz"))
        for name in ("before", "tensorflow", devices)
    )
    assert {*one} == {*two}
    for name in one:
        np.testing.assert_allclose(one[name], two[name], 1e-6, 1e-6, err_msg=name)
    moved = [np.abs(x - one[str(i)]).max() for i, x in enumerate(before.values())]
    assert max(moved) > 1e-3


def test_scheduled_sampling_trains_on_samples_on_jax(trained):
    folder, printed = trained
    with np.load(folder / "replaced.npz") as replaced:
        weights = [*replaced.values()]
    with np.load(folder / "sampled_1.npz") as plain:
        others = [plain[str(i)] for i in range(len(weights))]
    assert all(np.isfinite(x).all() for x in weights)
    moved = [np.abs(x - y).max() for x, y in zip(weights, others, strict=True)]
    assert max(moved) > 1e-4
    assert printed["drawn"] == 2 * STEPS  # two kinds of random numbers a step


if __name__ == "__main__":
    main(sys.argv[1])
