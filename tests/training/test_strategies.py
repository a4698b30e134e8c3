"""The same weights on two replicas as on one device, with the same global batch.

Batches of unequal rows also weigh as much on JAX.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny

import keras_caption as kc
from keras_caption.batches.pipeline import distributed
from keras_caption.batches.token_batches import TokenizedPairs
from keras_caption.tasks.translation import with_references
from keras_caption.training.strategies import is_chief

STEPS, IMAGES = 3, 4
TASKS = ("cross_entropy", "self_critical")
OF_TRANSLATION = ("translation", "self_critical_translation")
UNEVENLY = ("captions", "translation", "self-critical", "answers")
UNEVEN = (7, 5)  # rows of a batch, which two replicas share
JAX = "jax"  # on one device: those of JAX share even numbers of rows only
COMPILED = ("cross_entropy", "self_critical", "translation")  # by XLA, too
# What machines share otherwise than devices of one: batches of images, of tokens, and
# rewards. Translation accumulates.
OF_WORKERS = ("cross_entropy", "self_critical", "translation")
WORKERS = ("worker_0", "worker_1")


def train(strategy, task, path, jit_compile=False):
    """Trains a tiny model for some steps."""
    rng = np.random.default_rng(0)
    # Captions of very different lengths, the long ones all on one replica; and a
    # word that comes again and again.
    tokens = np.zeros((IMAGES, 2, 12), "int32")
    for image, length in enumerate((11, 10, 2, 3)):
        tokens[image, :, 1 : length - 1] = rng.integers(4, 7, (2, length - 2))
        tokens[image, :, 0], tokens[image, :, length - 1] = 1, 2
    batch = {**random_images(rng, IMAGES), "tokens": tokens}
    batch["references"] = tokens[:, :, 1:]
    # What the reward of true statements reads.
    batch["properties"] = rng.integers(0, 3, (IMAGES, 4, 5)).astype("int32")
    batch["relations"] = rng.random((IMAGES, 4, 4, 11)) < 0.5
    batch["statements"] = rng.random(IMAGES, "float32")

    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = kc.models.create(
            "ngsan",
            vocabulary_size=12,
            dropout=0.0,
            **tiny("ngsan", num_layers=1),
        )
        # Clipped much, with a large epsilon: no rounding error may become a step.
        optimizer = keras.optimizers.Adam(1e-2, epsilon=1e-3, global_clipnorm=0.01)
        if task == "self_critical":
            cider_d = kc.rewards.CiderD.from_references(batch["references"])
            words = ["a", "red", "star", "is", "left", "of", "ring", "large"]
            truth = kc.synthetic.scenes.StatementTruth(kc.text.Vocabulary(words))
            reward = kc.rewards.WeightedSum([cider_d, truth], [1.0, 5.0])
            trainer = kc.training.SelfCritical(
                model, reward, "mean", samples=2, cross_entropy=0.2, max_length=6
            )
            trainer.compile(optimizer, jit_compile=jit_compile)
        else:
            trainer = model
            trainer.compile(optimizer, loss=model.loss, jit_compile=jit_compile)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    images = tf.data.Dataset.from_tensor_slices(batch)
    data = images.batch(IMAGES).map(kc.text.teacher_forcing).repeat()
    data = data.with_options(options)
    done = trainer.fit(data, epochs=1, steps_per_epoch=STEPS, shuffle=False, verbose=0)
    logs = {name: values[-1] for name, values in done.history.items()}
    np.savez(path, *model.get_weights(), **logs)


def train_translator(strategy, task, path, jit_compile=False):
    """Trains a tiny translator for two epochs, by batches of two and of three pairs."""
    rng = np.random.default_rng(0)
    words = kc.text.Vocabulary([f"w{i}" for i in range(8)])
    sentences = [[*rng.choice(words.words, n)] for n in (2, 5, 5, 8, 9)]
    pairs = tf.data.Dataset.from_tensor_slices(
        {
            "source": [" ".join(words) for words in sentences],
            "target": [" ".join(words[::-2]) for words in sentences],
        }
    )
    pairs = TokenizedPairs(pairs, words, words, max_length=10)
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = kc.models.create(
            "transformer_tiny",
            source=words,
            target=words,
            **{"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8},
            dropout=0.0,
        )
        optimizer = keras.optimizers.Adam(1e-2, epsilon=1e-3, global_clipnorm=0.01)
        model.compile(optimizer, loss=model.loss, jit_compile=jit_compile)
        if task == "translation":
            trainer = kc.training.AccumulatingTrainer(model)
        else:
            trainer = kc.training.SelfCritical(
                model, kc.rewards.SentenceBleu(), "mean", samples=2, max_length=6
            )
            trainer.compile(optimizer, jit_compile=jit_compile)
    group = 2 if task == "translation" else 1

    def part_of_batches(*part):
        batches = pairs.batches(30, group=group, part=part)
        return batches if group == 2 else batches.map(with_references)

    steps = pairs.steps_per_epoch(30, group, strategy.num_replicas_in_sync)
    data = distributed(strategy, part_of_batches)
    done = trainer.fit(data, steps_per_epoch=2 * steps, verbose=0)
    logs = {name: values[-1] for name, values in done.history.items()}
    np.savez(path, *model.get_weights(), **logs)


def batches_of(task, rows):
    """A batch of some rows, as `fit` takes it."""
    rng = np.random.default_rng(rows)
    lengths = rng.integers(2, 7, (rows, 1))
    tokens = np.where(np.arange(8) < lengths, rng.integers(4, 9, (rows, 8)), 0)
    tokens = np.where(np.arange(8) == lengths, 2, tokens).astype("int32")
    images = random_images(rng, rows)
    if task == "answers":
        scores = rng.random((rows, 3)).astype("float32")
        return {**images, "question": tokens}, scores
    if task == "self-critical":
        return {**images, "references": tokens[:, None]}
    inputs = images if task == "captions" else {"source": tokens}
    tokens = np.pad(tokens, ((0, 0), (1, 0)), constant_values=1)
    batch = {**inputs, "tokens": tokens[:, None] if task == "captions" else tokens}
    return tuple(
        keras.tree.map_structure(np.asarray, x) for x in kc.text.teacher_forcing(batch)
    )


def train_unevenly(strategy, folder, where):
    """Trains each task by SGD on batches whose rows replicas cannot share evenly."""
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    image_sizes = {**sizes, "region_dim": 6, "dropout": 0.0}
    words = kc.text.QuestionTokenizer([f"w{i}" for i in range(9)])
    of_mcan = {"question": words, "fusion_dim": 8, "pooling_dim": 8, **image_sizes}
    makers = {
        "captions": lambda: kc.models.create("san", vocabulary_size=12, **image_sizes),
        "translation": lambda: kc.models.create(
            "transformer_tiny", source_size=12, target_size=12, dropout=0.0, **sizes
        ),
        "self-critical": lambda: kc.models.create(
            "san", vocabulary_size=12, **image_sizes
        ),
        "answers": lambda: kc.models.create("mcan", answers=["a", "b", "c"], **of_mcan),
    }
    for task, make in makers.items():
        keras.utils.set_random_seed(0)
        rng = np.random.default_rng(0)
        with contextlib.nullcontext() if where == JAX else strategy.scope():
            trainer = model = make()
            # Equal on each backend, whose random numbers differ.
            model.set_weights([0.3 * rng.normal(size=x.shape) for x in model.weights])
            if task == "self-critical":
                reward = kc.rewards.SentenceBleu()
                trainer = kc.training.SelfCritical(
                    model, reward, "mean", samples=2, max_length=6
                )
            trainer.compile(
                keras.optimizers.SGD(0.1),
                **{} if task == "self-critical" else {"loss": model.loss},
                jit_compile="auto" if where == JAX else False,
            )
        losses = []
        for rows in UNEVEN:
            data = tf.data.Dataset.from_tensors(batches_of(task, rows)).unbatch()
            done = trainer.fit(data.batch(rows), shuffle=False, verbose=0)
            losses += done.history["loss"]
        np.savez(f"{folder}/{task}_uneven_{where}.npz", *model.get_weights(), *losses)


def main(where, folder):
    strategy = tf.distribute.get_strategy()
    if where == JAX:
        train_unevenly(strategy, folder, where)
        return
    if where == "mirrored":
        [cpu] = tf.config.list_physical_devices("CPU")
        halves = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, halves)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    elif where != "one":
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == (1 if where == "one" else 2)
    for task in OF_WORKERS if where in WORKERS else (*TASKS, *OF_TRANSLATION):
        run = train_translator if task in OF_TRANSLATION else train
        run(strategy, task, f"{folder}/{task}_{where}.npz")
    if where in WORKERS:
        np.savez(f"{folder}/stopped_{where}.npz", stops_early(strategy))
    else:
        train_unevenly(strategy, folder, where)
    if where == "mirrored":
        for task in COMPILED:
            run = train_translator if task in OF_TRANSLATION else train
            run(strategy, task, f"{folder}/{task}_compiled.npz", jit_compile=True)
        np.savez(f"{folder}/dropped.npz", *drop(strategy))
        np.savez(f"{folder}/overflowed.npz", *overflow(strategy))


def drop(strategy):
    """What the first layer of a model drops out on each replica."""
    with strategy.scope():
        model = kc.models.create("ngsan", vocabulary_size=12, **tiny("ngsan"))
        model.make_train_function()
        [layer] = [x for x in model.encoder.layers if x.name.startswith("dropout")]
        found = strategy.run(lambda: layer(tf.ones((1, 500)), training=True))
    return strategy.experimental_local_results(found)


def overflow(strategy):
    """Weights after a step in half precision that one replica alone cannot take."""
    images = random_images(np.random.default_rng(0), 2, regions=3)
    images["regions"][1] = 1e30
    tokens = np.array([[1, 4, 5, 2]] * 2, "int32")
    batches = tf.data.Dataset.from_tensors({**images, "tokens": tokens})
    batches = batches.map(kc.text.teacher_forcing)
    with strategy.scope():
        model = kc.models.create(
            "san",
            vocabulary_size=12,
            dtype="mixed_float16",
            **tiny("san", num_layers=1),
        )
        optimizer = keras.optimizers.Adam(1e-2)
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        model.compile(optimizer, loss=model.loss, jit_compile=False)
    model.fit(batches, verbose=0)
    return model.get_weights()


def stops_early(strategy):
    """Whether a worker stops once the history, which the first alone has, stalls."""
    history = [{"val_cider": 1.0}] * 2 if is_chief(strategy) else []
    checkpoint = types.SimpleNamespace(history=history)
    model = types.SimpleNamespace(stop_training=False)
    stop = kc.training.StopEarly(checkpoint, "val_cider", 1, strategy)
    stop.set_model(model)
    stop.on_epoch_end(1)
    return model.stop_training


def start(where, folder, **environment):
    path = os.pathsep.join([str(pathlib.Path(__file__).parents[1]), *sys.path])
    return subprocess.Popen(
        [sys.executable, __file__, where, str(folder)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strategies")
    workers = [f"localhost:{port}" for port in free_ports(2)]
    clusters = {"mirrored": {}} | {
        where: {
            "cluster": {"worker": workers},
            "task": {"type": "worker", "index": index},
        }
        for index, where in enumerate(WORKERS)
    }
    processes = [
        start(where, folder, TF_CONFIG=json.dumps(config))
        for where, config in clusters.items()
    ]
    processes.append(start(JAX, folder, KERAS_BACKEND=JAX))
    try:
        main("one", folder)
        for process in processes:
            _, errors = process.communicate(timeout=600)
            assert process.returncode == 0, errors[-3000:]
    finally:
        for process in processes:
            process.kill()
    return folder


@pytest.mark.parametrize(
    ("task", "where"),
    [
        *((task, "mirrored") for task in (*TASKS, *OF_TRANSLATION)),
        *((task, "compiled") for task in COMPILED),
        *((task, where) for task in OF_WORKERS for where in WORKERS),
    ],
)
def test_two_replicas_train_as_one_device(trained, task, where):
    one, two = (np.load(trained / f"{task}_{w}.npz") for w in ("one", where))
    assert one.files == two.files
    for name in one.files:
        np.testing.assert_allclose(one[name], two[name], atol=1e-5, err_msg=name)


@pytest.mark.parametrize("where", ["mirrored", JAX])
@pytest.mark.parametrize("task", UNEVENLY)
def test_unequal_rows_weigh_as_on_one_device(trained, task, where):
    """Weights after an update of each batch, and the losses that were printed."""
    one, two = (np.load(trained / f"{task}_uneven_{w}.npz") for w in ("one", where))
    for name in one.files:
        np.testing.assert_allclose(one[name], two[name], 1e-5, 1e-5, err_msg=name)


def test_replicas_have_masks_of_their_own(trained):
    with np.load(trained / "dropped.npz") as dropped:
        first, second = (dropped[name] == 0 for name in dropped.files)
    assert 20 < first.sum() < 80
    assert 20 < second.sum() < 80
    assert (first & second).sum() < 20


def test_replicas_skip_a_step_together(trained):
    with np.load(trained / "overflowed.npz") as weights:
        assert all(np.isfinite(weights[name]).all() for name in weights.files)


@pytest.mark.parametrize("where", WORKERS)
def test_workers_stop_early_together(trained, where):
    with np.load(trained / f"stopped_{where}.npz") as stopped:
        assert stopped["arr_0"]


if __name__ == "__main__":
    main(*sys.argv[1:])


CHIEF, WORKERS_ALONE = {"chief": ["a:1"]}, {"worker": ["b:1", "c:1"]}


@pytest.mark.parametrize(
    ("cluster", "writer"),
    [
        (WORKERS_ALONE, "worker 0"),
        (CHIEF | WORKERS_ALONE, "chief 0"),
        (CHIEF | WORKERS_ALONE | {"evaluator": ["d:1"], "ps": ["e:1"]}, "chief 0"),
        (WORKERS_ALONE | {"evaluator": ["d:1"]}, "worker 0"),
    ],
)
def test_one_task_of_a_cluster_writes(cluster, writer, monkeypatch):
    writing = []
    for kind, tasks in cluster.items():
        for index in range(len(tasks)):
            task = {"type": kind, "index": index}
            config = json.dumps({"cluster": cluster, "task": task})
            monkeypatch.setenv("TF_CONFIG", config)
            resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
            if is_chief(types.SimpleNamespace(cluster_resolver=resolver)):
                writing.append(f"{kind} {index}")
    assert writing == [writer]
    assert is_chief(tf.distribute.get_strategy())
