"""Several seeds trained at once are those that are trained one by one."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds
from conftest import PROJECT

import keras_caption as kc

WORDS = "red", "green", "blue", "one", "two"
ARGUMENTS = (
    *("--model=ngsan", "--dataset=lengths", "--epochs=2"),
    *("--config.model.num_layers=1", "--config.model.model_dim=8"),
    *("--config.model.num_heads=2", "--config.model.feedforward_dim=8"),
    *("--config.training.batch_size=5", "--config.training.learning_rate=0.01"),
    *("--config.data.min_count=1", "--config.data.captions_per_image=2"),
    *("--config.decoding.beam_size=1", "--config.decoding.max_length=3"),
    "--config.model.dropout=0.0",  # whose masks depend on the padding
    *("--config.self_critical.epochs=5", "--config.self_critical.batch_size=5"),
    *("--config.self_critical.samples=2", "--config.self_critical.learning_rate=0.01"),
)
SHORT = "--epochs=1", "--config.self_critical.epochs=0"


class Lengths(tfds.core.GeneratorBasedBuilder):
    """Images of different numbers of regions and lengths of captions."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self, features=kc.datasets.region_features(3)
        )

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples() for split in ("train", "val", "test")}

    def _generate_examples(self):
        rng = np.random.default_rng(0)
        for i in range(10):
            count = rng.integers(1, 5)
            captions = [" ".join(rng.choice(WORDS, 1 + (i + n) % 4)) for n in range(2)]
            boxes = np.sort(rng.random((count, 2, 2)), axis=1).reshape(count, 4)
            yield (
                i,
                {
                    "image_id": i,
                    "regions": rng.normal(size=(count, 3)).astype("float32"),
                    "boxes": boxes.astype("float32"),
                    "captions": captions,
                    "words": captions,
                },
            )


def check(folder):
    """Trains seeds 3 and 5 at once, and 5 alone, and compares what they learned."""
    folder = pathlib.Path(folder)
    import tensorflow as tf

    from experiments import seeds  # on JAX
    from keras_caption.commands.configuration import make_config
    from keras_caption.commands.run_arguments import parse
    from keras_caption.training import phases
    from keras_caption.training.run_directory import RunDirectory, describe

    kc.datasets.register("lengths", lambda _: Lengths(data_dir=str(folder)))
    output = f"--output_dir={folder / 'run'}"
    # An epoch of seed 3 alone, which then waits for seed 5.
    seeds.main([*ARGUMENTS, *SHORT, "--seeds=3", "--drift", output])
    together = [*ARGUMENTS, "--seeds=3,5", "--drift", output]
    seeds.main(together)
    seeds.main(together)  # there is nothing to do

    strategy = tf.distribute.get_strategy()
    kind, config = make_config(None, parse([*ARGUMENTS, "--seed=5"], "")[1])
    task, alone = kind(config), folder / "alone"
    (alone / "scst").mkdir(parents=True)
    directory = RunDirectory(alone, describe(config, "cross-entropy"))
    phases.train_cross_entropy(task, directory, strategy)
    for epochs in (2, 5):  # resumed after two
        task.config["self_critical"]["epochs"] = epochs
        description = describe(config, "self-critical")
        directory = RunDirectory(alone / "scst", description, resume=epochs == 5)
        start = folder / "run_5" / "best.keras"
        phases.train_self_critically(task, directory, strategy, start)
    for part in (".", "scst"):
        for name in ("last.keras", "best.keras"):
            one, two = (
                kc.models.load(path / part / name) for path in (alone, folder / "run_5")
            )
            for a, b in zip(one.weights, two.weights, strict=True):
                # A softmax ignores the bias of keys: its gradient is rounding errors.
                if "seed_generator" not in a.path and "key/bias" not in a.path:
                    np.testing.assert_allclose(a, b, atol=1e-5, err_msg=a.path)
        one, two = (
            json.loads((path / part / "history.json").read_text())
            for path in (alone, folder / "run_5")
        )
        for a, b in zip(one, two, strict=True):
            moved = {*b} - {*a}
            assert {*a} < {*b} if part == "." else {*a} == {*b}
            assert all(0 < b[name] < 2 for name in moved), b
            np.testing.assert_allclose([*a.values()], [b[k] for k in a], 1e-4, 1e-5)
    assert len(two) * 2 >= 10  # self-critical steps
    # The last that was loaded is the best model of self-critical training.
    examples = kc.datasets.read(task.builder, "test")
    expected = kc.evaluation.caption_log_probabilities(
        kc.models.load(folder / "run_5" / "scst"),
        kc.batches.image_batches(examples, 5, ("regions", "boxes", "region_mask")),
        kc.datasets.references(examples),
    )
    items = json.loads((folder / "run_5" / "scst" / "test_items.json").read_text())
    found = dict(zip(items["ids"], items["log_probability"], strict=True))
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-4)


def test_seeds_trained_at_once_are_those_trained_alone(tmp_path):
    pytest.importorskip("jax")
    folders = ".", "tests", "tests/helpers", "tests/experiments"
    paths = [PROJECT / name for name in folders]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import test_seeds; test_seeds.check({str(tmp_path)!r})",
        ],
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            # Runs and phases compile the same programs.
            "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert done.stdout.count("is finished: nothing to do") == 4


def test_what_seeds_are_not_trained_at_once_with_is_said():
    pytest.importorskip("jax")
    from experiments import seeds
    from keras_caption.commands.configuration import make_config

    _, config = make_config(None, {"training.scheduled_sampling": 0.1})
    with pytest.raises(kc.InputError, match=r"training\.scheduled_sampling=0\.1"):
        seeds.check(config)
