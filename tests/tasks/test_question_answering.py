"""Question answering as a person runs it: from files to scores, killed and resumed."""

import json
import re
import shutil

import coco_files
import keras
import numpy as np
import pytest

import keras_caption as kc
from experiments.declining import thresholds_for
from keras_caption.apps.report.tasks import question_answering as report
from keras_caption.formats.items import read_items
from keras_caption.tasks import QuestionAnswering

TINY = {
    "data.images": "coco_objects",
    "model.num_layers": 1,
    "model.model_dim": 8,
    "model.num_heads": 2,
    "model.feedforward_dim": 8,
    "model.embedding_dim": 4,
    "model.pooling_dim": 4,
    "model.fusion_dim": 8,
    "model.dropout": 0.1,
    "training.batch_size": 8,
}
COLOURS = ["red", "blue", "green"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    coco_files.write(folder / "coco", *coco_files.contents(images=24))
    questions = [
        {
            "question_id": 10 * image_id + number,
            "image_id": image_id,
            "question": f"what colour is the {thing} ?",
            "answer": COLOURS[(image_id + number) % 3],
            "type": thing,
        }
        for image_id in range(10, 35)
        for number, thing in enumerate(["dog", "ball"])
    ]
    (folder / "coco_qa.json").write_text(json.dumps({"questions": questions}))
    return folder


@pytest.fixture
def call(call_script, folder, monkeypatch):
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)
    monkeypatch.setattr(
        "tensorflow_datasets.core.constants.DATA_DIR", str(folder / "tfds")
    )

    def run(output, *more):
        return call_script(
            *("experiments/run.py", "--model=mcan", "--dataset=coco_qa"),
            f"--data_dir={folder / 'coco_qa.json'}",
            f"--config.data.images_dir={folder / 'coco'}",
            f"--output_dir={folder / output}",
            *(f"--config.{name}={value}" for name, value in TINY.items()),
            *more,
        )

    return run


def test_a_run_killed_and_resumed_is_an_uninterrupted_one(folder, call, monkeypatch):
    monkeypatch.setattr(
        QuestionAnswering,
        "make_optimizer",  # Adam takes seconds to trace
        lambda *_: keras.optimizers.SGD(0.01, momentum=0.9),
    )
    save = kc.training.Checkpoint.on_epoch_end

    def save_and_copy(checkpoint, epoch, logs=None):
        save(checkpoint, epoch, logs)
        if epoch == 0 and checkpoint.folder == folder / "whole":
            shutil.copytree(folder / "whole", folder / "killed")

    monkeypatch.setattr(kc.training.Checkpoint, "on_epoch_end", save_and_copy)
    monkeypatch.setattr(report, "DRAWN", 1)
    whole = call("whole", "--epochs=2")
    assert whole.returncode == 0, whole.stderr
    check_report(folder / "whole", whole.stdout)
    monkeypatch.setattr(report, "draw_attention", lambda *_: None)
    resumed = call("killed", "--epochs=2", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "Resuming after epoch 1" in resumed.stdout
    weights, others = (
        keras.models.load_model(folder / run / "last.keras").get_weights()
        for run in ("whole", "killed")
    )
    for x, y in zip(weights, others, strict=True):
        np.testing.assert_array_equal(x, y)
    history, other = (
        json.loads((folder / run / "history.json").read_text())
        for run in ("whole", "killed")
    )
    assert history == other
    names = {"epoch", "iterations", "scale", "loss", "val_accuracy"}
    assert history[0].keys() == names
    assert "note: of 12 answers, " in whole.stdout  # alike, after two epochs
    assert history[0]["val_accuracy"] > 1


def check_report(output, printed):
    assert "24 training questions (2 without an image are skipped)" in printed
    scores = json.loads((output / "test_scores.json").read_text())
    assert scores.keys() == {"accuracy", "kinds", "answer_types"}
    assert scores["kinds"].keys() == {"dog", "ball"}
    assert scores["accuracy"] == pytest.approx(np.mean([*scores["kinds"].values()]))
    half = 196 * np.sqrt(scores["accuracy"] * (1 - scores["accuracy"]) / 12)
    row = f"| all | {100 * scores['accuracy']:.2f} | ± {half:.1f} | 12 |"
    assert row in " ".join(printed.split())
    results = kc.evaluation.read_vqa_results(output / "test_results.json")
    accuracies = read_items(output / "test_items.json")["accuracy"]
    assert accuracies.keys() == results.keys()
    assert np.mean([*accuracies.values()]) == pytest.approx(scores["accuracy"])
    # Images 13, 17, ... are those of the test split.
    expected = {10 * i + n for i in range(13, 34, 4) for n in range(2)}
    assert results.keys() == expected
    right = [COLOURS[(i // 10 + i % 10) % 3] == a for i, a in results.items()]
    assert scores["accuracy"] == pytest.approx(np.mean(right))
    for name in ("attention.png", "best.keras", "report.html", "logs"):
        assert (output / name).exists()
        assert name in printed
    page = (output / "report.html").read_text()
    assert page.count(">colour</button>") == 12
    assert page.count('<strong class="good">') == sum(right)
    [data] = re.findall('id="attention">(.*?)</script>', page)
    lines = json.loads(data)
    assert [len(line["words"]) for line in lines] == [5] * 12
    for line in lines:  # no padding is framed
        framed = {str(item) for word in line["words"] for item, _ in word}
        assert all(line["areas"][i][0] < line["areas"][i][2] for i in framed)


def test_runs_are_averaged_and_shown(folder, call, call_script):
    assert (folder / "whole").exists(), "needs the run above"
    done = call("both", f"--ensemble={folder / 'whole'},{folder / 'killed'}")
    assert done.returncode == 0, done.stderr
    scores, ours = (
        json.loads((folder / run / "test_scores.json").read_text())
        for run in ("both", "whole")
    )
    assert scores == ours  # of two equal models
    runs, page = [folder / "whole", folder / "both"], folder / "page.html"
    shown = call_script("keras-caption", "report", *runs, f"--output={page}")
    assert shown.returncode == 0, shown.stderr
    assert page.read_text().count(">colour</button>") == 12
    assert page.read_text().count("what colour is the") == 12  # without attention
    shown = call_script("experiments/tables.py", "--table=ngsan_9", folder / "whole")
    assert shown.returncode == 0, shown.stderr
    assert "| + GSA, test-std (mcan_gsa) " in shown.stdout
    shown = call_script("experiments/tables.py", folder / "whole", folder / "both")
    assert "Accuracy by type of the question" in shown.stdout


def test_each_kind_of_answers_has_its_threshold():
    sure = [0.9, 0.8, 0.7, 0.6]
    # As many say yes as no, so that 3 of 4 right answers are 2 of 3 in balance.
    known = ["yes", "yes", "yes", "no"]
    always = [("yes/no", p, x == "yes", x) for p, x in zip(sure, known, strict=True)]
    others = [
        ("other", p, right, "no") for p, right in zip(sure, [1, 0, 1, 0], strict=True)
    ]
    for accuracy, yes_no, other in (0.5, 0.6, 0.6), (0.6, 0.7, 0.7), (0.7, 0.7, 0.9):
        assert thresholds_for(always + others, accuracy) == {
            "yes/no": yes_no,
            "number": 1.0,
            "other": other,
        }
    never = [
        ("yes/no", p, x == "yes", x) for p, x in zip(sure, known[::-1], strict=True)
    ]
    assert thresholds_for(never, 0.6)["yes/no"] == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config.data.min_count=1000"], "No answer occurs min_count=1000 times"),
        (["--config.training.batch_size=100"], "A batch of 100 questions is more than"),
        (["--dataset=coco_qaa"], "no dataset of questions 'coco_qaa'. Did you mean"),
        (["--config.data.images_dir=nowhere"], "There is no folder nowhere"),
        (["--scst_epochs=1"], "--config has no 'self_critical.epochs'"),
        (["--config.data.word_vectors=nowhere.txt"], "nowhere.txt"),
        (["--config.data.vocabulary_split=val"], "Input should be 'train' or 'all'"),
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
