"""A dataset of one's own: one registration, and experiments train on it."""

import json

import numpy as np
import pytest
import tensorflow_datasets as tfds

import keras_caption as kc
from keras_caption.data import datasets
from keras_caption.tasks.reports import captioning as report

WORDS = "left", "right"


class Sides(tfds.core.GeneratorBasedBuilder):
    """Images of two regions, on the left or on the right."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(builder=self, features=kc.data.region_features(3))

    def _split_generators(self, dl_manager):
        return {split: self._generate_examples() for split in ("train", "val", "test")}

    def _generate_examples(self):
        for i in range(4):
            side = i % 2 / 2
            captions = [f"a dot on the {WORDS[i % 2]}"]
            yield (
                i,
                {
                    "image_id": i,
                    "regions": np.full((2, 3), side, "float32"),
                    "boxes": np.array([[side, 0, side + 0.5, 1]] * 2, "float32"),
                    "captions": captions,
                    "words": captions,
                },
            )


@pytest.fixture
def registered(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "DATASETS", dict(datasets.DATASETS))
    kc.data.register("sides", lambda folder: Sides(data_dir=tmp_path / "tfds"))


def test_an_experiment_trains_on_a_registered_dataset(
    registered, call_script, monkeypatch, tmp_path
):
    # What takes seconds, and is tested elsewhere.
    monkeypatch.setattr(kc.evaluation, "score", lambda *_: ({}, {}))
    monkeypatch.setattr(report, "draw_attention", lambda *_: None)
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)
    values = {
        "model.num_layers": 1,
        "model.model_dim": 8,
        "training.batch_size": 4,
        "data.min_count": 1,
        "decoding.beam_size": 1,
    }
    done = call_script(
        *("experiments/run.py", "--model=san", "--dataset=sides", "--epochs=1"),
        f"--output_dir={tmp_path / 'run'}",
        *(f"--config.{name}={value}" for name, value in values.items()),
    )
    assert done.returncode == 0, done.stderr
    model = kc.models.load(tmp_path / "run")
    assert set(WORDS) < set(model.vocabulary.words)
    assert model.input_specs["regions"].shape[-1] == 3
    results = json.loads((tmp_path / "run" / "test_results.json").read_text())
    assert sorted(row["image_id"] for row in results) == [0, 1, 2, 3]


def test_a_name_is_registered_once(registered):
    with pytest.raises(ValueError, match="There is a dataset 'scenes' already"):
        kc.data.register("scenes", Sides)
