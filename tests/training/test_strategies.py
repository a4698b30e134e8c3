"""The same weights on two replicas as on one device, with the same global batch."""

import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import TINY, random_images

import keras_caption as kc

STEPS, IMAGES = 3, 4
TASKS = ("adam", "clipped", "scst")


def train(strategy, task, path):
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

    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = kc.models.create("ngsan", vocabulary_size=12, dropout=0.0, **TINY)
        reward = kc.rewards.CiderD.from_references(batch["references"])
        trainer = model
        if task == "scst":
            trainer = kc.training.SelfCritical(
                model, reward, "mean", samples=2, cross_entropy=0.2, max_length=6
            )
        clip = 0.01 if task == "clipped" else None
        optimizer = keras.optimizers.SGD(0.5, global_clipnorm=clip)
        if task == "adam":
            optimizer = keras.optimizers.Adam(1e-2, epsilon=1e-3)
        if task == "scst":
            trainer.compile(optimizer)
        else:
            trainer.compile(optimizer, loss=model.loss)
    data = tf.data.Dataset.from_tensor_slices(batch).batch(IMAGES).repeat()
    done = trainer.fit(data, epochs=1, steps_per_epoch=STEPS, shuffle=False, verbose=0)
    logs = {name: values[-1] for name, values in done.history.items()}
    np.savez(path, *model.get_weights(), **logs)


def main(where, folder):
    strategy = tf.distribute.get_strategy()
    if where == "mirrored":
        [cpu] = tf.config.list_physical_devices("CPU")
        halves = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, halves)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        assert strategy.num_replicas_in_sync == 2
    for task in TASKS:
        train(strategy, task, f"{folder}/{task}_{where}.npz")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strategies")
    path = os.pathsep.join([str(pathlib.Path(__file__).parents[1]), *sys.path])
    for where in ("one", "mirrored"):
        done = subprocess.run(
            [sys.executable, __file__, where, str(folder)],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("task", TASKS)
def test_two_replicas_train_as_one_device(trained, task):
    one, two = (
        np.load(trained / f"{task}_{where}.npz") for where in ("one", "mirrored")
    )
    assert one.files == two.files
    for name in one.files:
        np.testing.assert_allclose(one[name], two[name], atol=1e-5, err_msg=name)


if __name__ == "__main__":
    main(*sys.argv[1:])
