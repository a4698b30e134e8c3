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
    *("--model=ngsan", "--dataset=lengths", "--epochs=1"),
    *("--config.model.num_layers=1", "--config.model.model_dim=8"),
    *("--config.model.num_heads=2", "--config.model.feedforward_dim=8"),
    *("--config.training.batch_size=5", "--config.training.learning_rate=0.01"),
    *("--config.data.min_count=1", "--config.data.captions_per_image=2"),
    *("--config.decoding.beam_size=1", "--config.decoding.max_length=3"),
    "--config.model.dropout=0.0",  # whose masks depend on the padding
)


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
    from experiments import seeds  # on JAX
    from keras_caption.commands.configuration import make_config
    from keras_caption.commands.run_arguments import parse

    kc.datasets.register("lengths", lambda _: Lengths(data_dir=str(folder)))
    together = [*ARGUMENTS, "--seeds=3,5", f"--output_dir={folder / 'run'}"]
    seeds.main(together)
    seeds.main(together)  # there is nothing to do

    task, config = make_config(None, parse([*ARGUMENTS, "--seed=5"], "")[1])
    alone = seeds.Run(task(config), folder / "alone")
    seeds.share_data([alone])
    model = alone.make_model()
    loss = model.fit(
        alone.task.train_batches(model, "training", 0), steps_per_epoch=alone.steps
    )
    other = kc.models.load(folder / "run_5")
    for one, two in zip(model.weights, other.weights, strict=True):
        if "seed_generator" not in one.path:
            np.testing.assert_allclose(one, two, atol=1e-5, err_msg=one.path)
    [row] = json.loads((folder / "run_5" / "history.json").read_text())
    np.testing.assert_allclose(loss.history["loss"], row["loss"], rtol=1e-4)
    validation = alone.task.validation(model)
    np.testing.assert_allclose(validation.loss(), row["val_loss"], rtol=1e-4)
    examples = kc.datasets.read(alone.task.builder, "test")
    expected = kc.evaluation.caption_log_probabilities(
        model,
        kc.batches.image_batches(examples, 5, model.input_specs),
        kc.datasets.references(examples),
    )
    items = json.loads((folder / "run_5" / "test_items.json").read_text())
    found = dict(zip(items["ids"], items["log_probability"], strict=True))
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-4)


def test_seeds_trained_at_once_are_those_trained_alone(tmp_path):
    pytest.importorskip("jax")
    paths = PROJECT, PROJECT / "tests", PROJECT / "tests/experiments"
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
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert done.stdout.count("is finished: nothing to do") == 2


def test_what_seeds_are_not_trained_at_once_with_is_said():
    pytest.importorskip("jax")
    from experiments import seeds
    from keras_caption.commands.configuration import make_config

    _, config = make_config(None, {"training.scheduled_sampling": 0.1})
    with pytest.raises(kc.InputError, match=r"training\.scheduled_sampling=0\.1"):
        seeds.check(config)
