"""Translation as a person runs it: from parallel text to scores, and resumed."""

import html
import json
import shutil
import types

import keras
import numpy as np
import pytest

import keras_caption as kc
from keras_caption.apps.report.tasks import translation as report
from keras_caption.apps.report.tasks.translation_examples import attended
from keras_caption.base import progress
from keras_caption.formats.items import read_items

WORDS = ["one", "two", "three", "four", "five", "six", "sev@@", "eight", "ni@@", "ten"]
TINY = {
    "model.num_layers": 1,
    "model.model_dim": 8,
    "model.num_heads": 2,
    "model.feedforward_dim": 8,
    "model.input_area": 2,
    "model.output_area": 2,
    "data.tokenizer": "words",
    "data.max_tokens": 8,
    "training.tokens_per_batch": 64,
    "training.warmup_steps": 10,
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


@pytest.fixture
def kill_after(folder, monkeypatch):
    """Keeps a copy of a run, `killed`, as it is after some epochs."""

    def kill_after(epochs, output):
        save = kc.training.Checkpoint.on_epoch_end

        def save_and_copy(checkpoint, epoch, logs=None):
            save(checkpoint, epoch, logs)
            if epoch + 1 == epochs and checkpoint.folder.is_relative_to(output):
                shutil.copytree(output, folder / f"killed_{output.name}")

        monkeypatch.setattr(kc.training.Checkpoint, "on_epoch_end", save_and_copy)

    return kill_after


ACCUMULATED = [
    "--epochs=9",
    "--config.training.accumulation=2",
    "--config.training.average=2",
    "--config.training.patience=2",
]


def test_a_run_killed_and_resumed_is_an_uninterrupted_one(
    folder, call, kill_after, monkeypatch
):
    kill_after(2, folder / "whole")
    whole = call("whole", *ACCUMULATED)
    assert whole.returncode == 0, whole.stderr
    assert "training pairs (" in whole.stdout
    heads = "| BLEU | chrF | exact | log_perplexity |"
    assert heads in " ".join(whole.stdout.split())
    history = json.loads((folder / "whole" / "history.json").read_text())
    updates = history[0]["iterations"]
    scores = json.loads((folder / "whole" / "test_scores.json").read_text())
    assert set(scores) == {"BLEU", "chrF", "exact", "log_perplexity"}
    items = read_items(folder / "whole" / "test_items.json")
    for name in ("BLEU", "log_perplexity"):
        sums = np.sum([*items[name].values()], axis=0)
        found = kc.evaluation.SCORES.get(name, kc.evaluation.ratio)(sums)
        assert found == pytest.approx(scores[name])
    lines = (folder / "whole" / "test_translations.txt").read_text().splitlines()
    assert len(lines) == 5
    shown = whole.stdout.split("before the reference:\n")[1].splitlines()[:15]
    sources, translations, references = shown[::3], shown[1::3], shown[2::3]
    page = html.unescape((folder / "whole" / "report.html").read_text())
    assert all(f">{source.strip()}</p>" in page for source in sources)
    assert all(f"<li>{reference.strip()}</li>" in page for reference in references)
    check_attention_of_words(folder / "whole", page)
    assert "@@" in "".join(sources)
    assert "@@" not in "".join(translations + references)

    monkeypatch.setattr(progress, "EVERY", 0)
    resumed = call("killed_whole", *ACCUMULATED, "--resume")
    assert f"Epoch 3: {updates}/{updates} steps (100%), after 0:" in resumed.stderr
    assert "Translating: 5/5 sentences (100%), after 0:" in resumed.stderr
    assert resumed.returncode == 0, resumed.stderr
    assert "Resuming after epoch 2" in resumed.stdout
    for output in (whole, resumed):
        assert "Stopped after epoch 3: val_bleu" in output.stdout
    model, history = check_equal(folder / "whole", folder / "killed_whole")
    assert model.source == model.target
    assert [row["iterations"] for row in history] == [updates, 2 * updates, 3 * updates]
    files = {path.name for path in (folder / "whole" / "weights").iterdir()}
    assert files == {"epoch_2.npz", "epoch_3.npz"}


def test_a_number_of_updates_ends_training(folder, call):
    few = "--epochs=9", "--resume", "--config.training.max_steps=8"
    options = *few, "--config.training.warmup_steps=2"
    done = call("steps", *options)
    assert done.returncode == 0, done.stderr
    path = folder / "steps" / "history.json"
    history = json.loads(path.read_text())
    assert history[-1]["iterations"] == 8
    assert 8 % history[0]["iterations"] > 0  # within an epoch
    assert "val_bleu" in history[-1]
    (folder / "steps" / "test_scores.json").unlink()
    assert call("steps", *options).returncode == 0
    assert json.loads(path.read_text()) == history
    # The rest of an epoch is never dropped, and no step is taken back.
    config = (folder / "steps" / "config.json").read_text()
    for steps, problem in ((12, "within an epoch"), (6, "8 steps already, more")):
        done = call("steps", *options, f"--config.training.max_steps={steps}")
        assert done.returncode == 1
        assert problem in done.stderr
    assert (folder / "steps" / "config.json").read_text() == config
    done = call("too_few", *few)
    assert "warmup_steps=10 is more than the 8 steps" in done.stderr


def check_attention_of_words(folder, page):
    """The report has shares of the source's words, of tokens taken together."""
    stored = page.split('id="attention">')[1].split("</script>")[0]
    texts = (folder / "test_translations.txt").read_text().splitlines()
    lines = [line for line in json.loads(stored) if line]
    assert len(lines) == sum(map(bool, texts)) > 0
    for line in lines:
        assert line["names"][-1] == "<eos>"
        assert all(95 <= sum(x for _, x in word) <= 105 for word in line["words"])
    model = kc.models.load(folder)
    source = model.source_tokens(["one sev@@ ten two"])
    inputs = model.read({"source": np.array(source)})
    captions = model.vocabulary.encode("ni@@ ten six")[:-1]
    [weights] = np.array(model.attention(np.array([captions]), model.encode(inputs)))
    one, sev, ten, two, end = weights.T
    expected = np.stack([one, sev + ten, two, end], axis=1)
    expected = [expected[:2].mean(axis=0), expected[2]]
    [(words, gap, found)] = attended(model, ["one sev@@ ten two"], ["ni@@ ten six"])
    assert gap.join(words) == "niten six"
    assert found.names == ["one", "sevten", "two", "<eos>"]
    np.testing.assert_allclose(found.weights, expected, atol=1e-6)
    [(words, gap, found)] = attended(model, ["one"], ["sev@@ ten"])
    assert [gap.join(words), found.gap] == ["sevten", ""]
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-5)


def test_the_report_says_what_its_figures_and_outputs_lack(
    tmp_path, monkeypatch, capsys
):
    likelihoods = dict.fromkeys(range(2), (-1.0, 1))
    monkeypatch.setattr(kc.evaluation, "log_probabilities", lambda *_: likelihoods)
    model = types.SimpleNamespace(
        name="translator",
        decoding=kc.decoding.Decoding(beam_size=1),
        translate=lambda _: ["", ""],
        vocabulary=types.SimpleNamespace(as_decoded=str),
    )
    sentences = ["a white dog", "two cats"], ["一只白色的狗在跑", "两只猫在睡觉"]
    task = types.SimpleNamespace(
        sentences=lambda split: sentences, config={"evaluation": {"tokenized": False}}
    )
    report.evaluate(task, model, tmp_path)
    printed = capsys.readouterr().out
    assert "BLEU counts words, and means nothing here; chrF counts" in printed
    assert "note: of 2 translations, 2 are empty: usually" in printed


def test_self_critical_training_resumes_to_the_bit(
    folder, call, kill_after, monkeypatch
):
    monkeypatch.setattr(
        kc.tasks.Translation,
        "make_optimizer",
        lambda *_: keras.optimizers.SGD(0.1, momentum=0.9),
    )
    options = [
        f"--start_from={folder / 'whole'}",
        "--config.self_critical.samples=2",
        "--config.self_critical.tokens_per_batch=64",
        "--scst_epochs=2",
    ]
    kill_after(1, folder / "scst")
    whole = call("scst", *options)
    assert whole.returncode == 0, whole.stderr
    resumed = call("killed_scst", *options, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    _, history = check_equal(folder / "scst" / "scst", folder / "killed_scst" / "scst")
    assert {"reward", "val_bleu", "val_loss"} <= set(history[0])
    assert 0 < history[0]["reward"] < 1


def check_equal(*folders):
    """Compares two runs to the bit; returns the model, and the logs of the epochs."""
    for name in ("best.keras", "last.keras"):
        models = [keras.models.load_model(folder / name) for folder in folders]
        assert_same(*(model.get_weights() for model in models))
    assert_same(*([*map(np.array, m.optimizer.variables)] for m in models))
    history, other = (json.loads((x / "history.json").read_text()) for x in folders)
    assert history == other
    return models[0], history


def assert_same(found, expected):
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config.data.target=de"], "has no train.de"),
        (["--config.data.max_tokens=2000"], "less than or equal to 1024"),
        (["--config.decoding.length_ratio=-1"], "--config.decoding.length_ratio"),
        (["--config.data.tokenizer=letters"], "--config.data.tokenizer"),
        (["--config.data.vocabulary_size=1"], "should be greater than 260"),
        ([f"--config.data.vocabulary_size={2**40}"], "--config.data.vocabulary_size"),
        (["--config.training.tokens_per_batch=4"], "cannot hold a pair"),
        (["--config.training.accumulation=99"], "less than or equal to 32"),
        (["--config.training.accumulation=30"], "An update of 30 batches does not fit"),
        (["--config.training.warmup_steps=999"], "warmup_steps=999 is more than the"),
        (["--config.training.stop_on=loss"], "--config.training.stop_on"),
        (["--config.data.tokenizer=subwords"], "does not yield 500 subwords"),
    ],
)
def test_mistakes_are_one_sentence(folder, call, options, message):
    failed = call("wrong", *options)
    assert failed.returncode == 1
    *_, sentence = failed.stderr.strip().splitlines()
    assert sentence.startswith("error: ")
    assert message in sentence
    assert "Traceback" not in failed.stderr
    assert not list((folder / "wrong").glob("*.json"))
