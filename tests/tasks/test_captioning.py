"""Captioning by characters, as a person runs it: trained and scored."""

import json
import types

import coco_files
import numpy as np
import pytest

import keras_caption as kc
from keras_caption.apps.report.tasks import captioning as report
from keras_caption.commands.configuration import make_config
from keras_caption.datasets import registry
from keras_caption.evaluation import metric
from keras_caption.formats.items import read_items
from keras_caption.tasks import Captioning

CAPTIONS = [["左边有一只猫。"], ["右边有两只小狗。"]]
OPTIONS = {
    "model.num_layers": 1,
    "model.model_dim": 16,
    "model.feedforward_dim": 16,
    "model.dropout": 0,
    "training.batch_size": 8,
    "training.learning_rate": 0.01,
    "data.min_count": 1,
    "data.captions_per_image": 1,
    "data.max_words": 9,
    "decoding.max_length": 12,
    "decoding.beam_size": 1,
}


@pytest.fixture
def call(call_script, monkeypatch, tmp_path):
    """Runs an experiment on photos whose captions are Chinese."""
    sides = np.arange(24) % 2
    regions = np.repeat(sides[:, None, None] - 0.5, 3, axis=2).astype("float32")
    dataset = kc.datasets.from_arrays(
        {"regions": regions, "boxes": np.tile([[[0.0, 0.0, 1.0, 1.0]]], (24, 1, 1))},
        [CAPTIONS[side] for side in sides],
        ["train"] * 16 + ["val"] * 4 + ["test"] * 4,
    )
    monkeypatch.setattr(registry, "DATASETS", {"photos": lambda folder: dataset})
    monkeypatch.setattr(metric, "meteor", lambda *_: 0.5)  # takes seconds
    monkeypatch.setattr(report, "draw_attention", lambda *_: None)
    monkeypatch.setattr(report, "summaries", lambda *_: {})
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)

    def run(*more):
        return call_script(
            *("experiments/run.py", "--model=san", "--dataset=photos"),
            f"--output_dir={tmp_path / 'run'}",
            *(f"--config.{name}={value}" for name, value in OPTIONS.items()),
            *more,
        )

    return run


def test_a_captioner_of_characters_learns_and_is_scored_by_them(call, tmp_path):
    done = call("--epochs=12", "--config.data.tokenizer=characters")
    assert done.returncode == 0, done.stderr
    assert "0 of 16 captions cut at data.max_words=9 characters" in done.stdout
    assert "note: by characters: these scores do not compare" in done.stdout
    results = kc.evaluation.read_results(tmp_path / "run" / "test_results.json")
    assert {*results.values()} == {text for [text] in CAPTIONS}
    scores = json.loads((tmp_path / "run" / "test_scores.json").read_text())
    assert scores["CIDEr-D"] > 5
    history = json.loads((tmp_path / "run" / "history.json").read_text())
    last = history[-1]
    assert last["val_cider"] == pytest.approx(100 * scores["CIDEr-D"])
    items = read_items(tmp_path / "run" / "test_items.json")
    assert np.mean([*items["CIDEr-D"].values()]) == pytest.approx(scores["CIDEr-D"])
    truth = json.loads((tmp_path / "run" / "test_references.json").read_text())
    lengths = {x["image_id"]: len(x["caption"]) + 1 for x in truth["annotations"]}
    likelihoods = [x * lengths[i] for i, [x] in items["log_probability"].items()]
    # Images and captions are the same in both splits.
    best = max(history, key=lambda row: row["val_cider"])
    loss = -sum(likelihoods) / sum(lengths.values())
    assert best["val_loss"] == pytest.approx(loss, rel=1e-3)
    assert done.stdout.count("note: of 4 validation captions, ") == 1  # of epoch 1


def test_a_score_that_means_nothing_is_noted_before_training(capsys, vocabulary):
    dataset = kc.datasets.from_arrays(
        {"regions": np.ones((1, 1, 3))}, [CAPTIONS[0]], ["val"]
    )
    task = types.SimpleNamespace(
        config={
            "evaluation": {"validation_beam_size": 1},
            "decoding": {"max_length": 5},
            "training": {"batch_size": 2},
        },
        read=lambda split: kc.datasets.read(dataset, split),
        data={"max_words": 5},
        few_shapes=False,
    )
    model = types.SimpleNamespace(
        vocabulary=vocabulary, input_specs=["regions"], variables=[]
    )
    Captioning.validation(task, model)
    printed = capsys.readouterr().out
    assert "Validation, note: captions without spaces are one word each" in printed
    assert "Validation, CIDEr-D: means nothing: it is 0" in printed


def test_statements_are_judged_word_by_word(call):
    done = call(
        "--config.self_critical.reward=truth",
        "--scst_epochs=1",
        "--config.data.tokenizer=characters",
    )
    assert done.returncode == 1
    assert "self_critical.reward: 'truth' needs" in done.stderr


def test_objects_are_of_coco(call):
    done = call("--config.self_critical.reward=cider_d+4*objects", "--scst_epochs=1")
    assert done.returncode == 1
    assert "self_critical.reward: 'objects' needs a dataset of COCO's" in done.stderr


def test_objects_are_rewarded_and_scored(tmp_path, monkeypatch):
    folder = coco_files.write(tmp_path / "coco", *coco_files.contents())
    monkeypatch.setattr("tensorflow_datasets.core.constants.DATA_DIR", str(tmp_path))
    _, config = make_config(
        None,
        {
            "data.dataset": "coco_objects",
            "data.data_dir": str(folder),
            "data.min_count": 1,
            "self_critical.reward": "2*objects",
            "self_critical.batch_size": 2,
        },
    )
    task = Captioning(config)
    vocabulary = task.build_vocabularies()["vocabulary"]
    model = types.SimpleNamespace(
        vocabulary=vocabulary, input_specs=["regions", "boxes"]
    )
    assert task.steps_per_epoch("self_critical") > 0
    batch = next(iter(task.train_batches(model, "self_critical", 0)))[0]
    reward = task.make_reward(model, None, resumed=False)
    read = {name: batch[name] for name in reward.reads}
    people = batch["references"][:, 0]  # name each of the objects once
    np.testing.assert_allclose(reward(people, batch["references"], **read), 2.0)

    examples = task.read("test")
    references = kc.datasets.references(examples)
    captions = {image_id: texts[0] for image_id, texts in references.items()}
    captions[next(iter(captions))] = "a zebra"
    scores = report.score_objects(captions, references, examples, task.builder)
    assert scores["CHAIR-s"] == 1 / len(captions)
