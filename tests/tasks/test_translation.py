"""Translation as a person runs it: from parallel text to scores, and resumed."""

import json

import keras
import numpy as np
import pytest

import keras_caption as kc

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TINY = {
    "model.num_layers": 1,
    "model.model_dim": 8,
    "model.num_heads": 2,
    "model.feedforward_dim": 8,
    "data.tokenizer": "words",
    "data.max_tokens": 8,
    "training.tokens_per_batch": 64,
    "decoding.beam_size": 1,
    "decoding.max_length": 6,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("translation"), np.random.default_rng(0)
    for split, count in (("train", 40), ("val", 4), ("test", 5)):
        pairs = [list(rng.choice(WORDS, rng.integers(2, 10))) for _ in range(count)]
        for language, step in (("en", 1), ("fr", -1)):
            lines = [" ".join(words[::step]) + "\n" for words in pairs]
            (folder / f"{split}.{language}").write_text("".join(lines))
    return folder


@pytest.fixture
def call(call_script, folder, monkeypatch):
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)

    def run(output, *more):
        return call_script(
            *("experiments/run.py", "--model=transformer_tiny_area"),
            *("--dataset=parallel", f"--data_dir={folder}"),
            *("--config.data.target=fr", f"--output_dir={folder / output}"),
            *(f"--config.{name}={value}" for name, value in TINY.items()),
            *more,
        )

    return run


def test_a_resumed_translator_is_that_of_an_uninterrupted_run(folder, call):
    whole = call("whole", "--epochs=2")
    assert whole.returncode == 0, whole.stderr
    assert "training pairs (" in whole.stdout
    assert "| BLEU | chrF | exact | log_perplexity |" in whole.stdout
    scores = json.loads((folder / "whole" / "test_scores.json").read_text())
    assert set(scores) == {"BLEU", "chrF", "exact", "log_perplexity"}
    lines = (folder / "whole" / "test_translations.txt").read_text().splitlines()
    assert len(lines) == 5
    assert call("parts", "--epochs=1").returncode == 0
    resumed = call("parts", "--epochs=2", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "Resuming after epoch 1" in resumed.stdout
    models = [
        keras.models.load_model(folder / output / "last.keras")
        for output in ("whole", "parts")
    ]
    for x, y in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_array_equal(x, y)
    assert models[0].source == models[1].target


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config.data.target=de"], "has no train.de"),
        (["--config.data.max_tokens=2000"], "less than or equal to 1024"),
        (["--config.decoding.length_ratio=-1"], "--config.decoding.length_ratio"),
        (["--config.data.tokenizer=letters"], "--config.data.tokenizer"),
        (["--config.training.tokens_per_batch=4"], "cannot hold a pair"),
        (["--scst_epochs=1"], "no 'self_critical.epochs'"),
        (["--config.data.tokenizer=subwords"], "does not yield 500 subwords"),
    ],
)
def test_mistakes_are_one_sentence(folder, call, options, message):
    failed = call("wrong", *options)
    assert failed.returncode == 1
    assert message in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert not list((folder / "wrong").glob("*.json"))
