"""The experiment as a person runs it: from files to scores, killed and resumed."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import coco_files
import keras
import numpy as np
import pytest
from conftest import PROJECT, run_script

import keras_caption as kc

EPOCHS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    coco_files.write(folder / "coco", *coco_files.contents(images=48))
    return folder


def command(folder, output, *more):
    tiny = {
        "model.num_layers": 1,
        "model.model_dim": 16,
        "model.num_heads": 2,
        "model.feedforward_dim": 32,
        "model.geometry_dim": 4,
        "training.batch_size": 4,
        "training.min_count": 1,
        "training.scheduled_sampling": 0.1,
        "training.clip_value": 0.1,
        "self_critical.halved_after": 1,
        "self_critical.batch_size": 4,
        "decoding.beam_size": 2,
    }
    return [
        "experiments/run.py",
        "--model=ngsan",
        "--dataset=coco_objects",
        f"--data_dir={folder / 'coco'}",
        f"--output_dir={folder / output}",
        f"--epochs={EPOCHS}",
        *(f"--config.{name}={value}" for name, value in tiny.items()),
        *more,
    ]


def run(folder, *args):
    return run_script(*command(folder, *args), TFDS_DATA_DIR=str(folder / "tfds"))


def kill_after(epochs, history, folder, *args):
    """Starts a run, and kills it once so many epochs are in `history`."""
    process = subprocess.Popen(
        [sys.executable, *command(folder, *args)],
        cwd=PROJECT,
        env={**os.environ, "TFDS_DATA_DIR": str(folder / "tfds")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (history.exists() and len(json.loads(history.read_text())) >= epochs):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(json.loads(history.read_text())) < EPOCHS


def test_interrupted_and_resumed_is_uninterrupted(folder):
    options = [f"--scst_epochs={EPOCHS}", "--deterministic"]
    whole = run(folder, "whole", *options)
    assert whole.returncode == 0, whole.stderr
    check_report(folder / "whole", whole.stdout)
    check_report(folder / "whole" / "scst", whole.stdout)

    options.append("--strategy=mirrored")  # of one replica: the same
    killed = folder / "killed"
    kill_after(2, killed / "history.json", folder, "killed", *options)
    kill_after(
        2, killed / "scst" / "history.json", folder, "killed", *options, "--resume"
    )
    resumed = run(folder, "killed", *options, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert f"{killed} is finished: nothing to do" in resumed.stdout
    assert "Going on after epoch" in resumed.stdout
    for phase in (".", "scst"):
        check_same(folder / "whole" / phase, killed / phase)


def check_same(whole, killed):
    for name in ("last.keras", "best.keras"):
        a, b = (keras.models.load_model(f / name) for f in (whole, killed))
        for x, y in zip(a.get_weights(), b.get_weights(), strict=True):
            np.testing.assert_array_equal(x, y)
        if name == "last.keras":
            for x, y in zip(a.optimizer.variables, b.optimizer.variables, strict=True):
                np.testing.assert_array_equal(x, y)
    a, b = (json.loads((f / "history.json").read_text()) for f in (whole, killed))
    assert a == b


def check_report(output, printed):
    scores = json.loads((output / "test_scores.json").read_text())
    assert set(kc.evaluation.METRICS[:-1]) <= set(scores)
    assert "| ngsan |" in printed
    results = json.loads((output / "test_results.json").read_text())
    assert len(results) == 12
    assert results[0]["caption"] in printed
    for name in ("attention.png", "1/saved_model.pb", "logs/train"):
        assert (output / name).exists()
        assert name.split("/")[0] in printed
    again = kc.evaluation.score_files(
        output / "test_references.json", output / "test_results.json"
    )
    assert again[0] == {name: scores[name] for name in again[0]}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--model=ngsam"],
            "error: There is no model named 'ngsam'. Did you mean ngsan",
        ),
        (["--dataset=cocoo"], "error: There is no dataset 'cocoo'. Did you mean coco"),
        (["--config.model.depth=3"], "error: --config has no value \"'depth'\""),
        (["--config.training.batch_size=1000"], "error: A batch of 1000 images"),
        (["--start_from=some.keras"], "error: --start_from is for self-critical"),
        (["--config.model.geometry=round"], "error: `kind` must be one of"),
    ],
)
def test_mistakes_are_told_in_one_line(folder, args, message):
    done = run(folder, "mistake", *args)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (folder / "mistake").exists()


def test_a_run_is_not_resumed_on_other_data(folder):
    assert (folder / "whole").exists(), "needs the run above"
    captions, instances, split = coco_files.contents(images=48)
    for annotation in captions["annotations"]:
        annotation["caption"] = annotation["caption"].replace("dog", "cat")
    coco_files.write(folder / "other", captions, instances, split)
    done = run(folder, "whole", "--resume", f"--data_dir={folder / 'other'}")
    assert done.returncode == 1
    assert "has another vocabulary" in done.stderr.splitlines()[-1]


def test_a_run_is_not_resumed_with_other_values(folder):
    assert (folder / "whole").exists(), "needs the run above"
    config = (folder / "whole" / "config.json").read_text()
    done = run(folder, "whole", "--resume", "--config.model.num_layers=3", "--seed=1")
    assert done.returncode == 1
    assert "begun with seed=0, not 1; model.num_layers=1, not 3." in done.stderr
    assert (folder / "whole" / "config.json").read_text() == config


def test_an_ensemble_is_of_its_members_files(folder):
    assert (folder / "whole").exists(), "needs the run above"
    members = [folder / "whole", folder / "whole" / "scst" / "best.keras"]
    done = run(folder, "both", f"--ensemble={members[0]},{members[1]}")
    assert done.returncode == 0, done.stderr
    assert "| ngsan + ngsan |" in done.stdout
    # Trained again, members are others, and `--resume` scores them again.
    about = json.loads((folder / "both" / "config.json").read_text())
    files = [members[0] / "best.keras", members[1]]
    assert about["members"] == {
        str(member): hashlib.sha256(file.read_bytes()).hexdigest()
        for member, file in zip(members, files, strict=True)
    }
    assert about["member_objectives"] == ["cross-entropy", "self-critical"]


def test_a_run_is_scored_on_other_data(folder):
    assert (folder / "whole").exists(), "needs the run above"
    coco_files.write(folder / "elsewhere", *coco_files.contents(images=20, seed=1))
    done = run_script(
        *("experiments/evaluate.py", folder / "whole", "--dataset=coco_objects"),
        f"--data_dir={folder / 'elsewhere'}",
        TFDS_DATA_DIR=str(folder / "tfds"),
    )
    assert done.returncode == 0, done.stderr
    output = folder / "whole" / "on_elsewhere"
    scores = json.loads((output / "test_scores.json").read_text())
    again = kc.evaluation.score_files(
        output / "test_references.json", output / "test_results.json"
    )
    assert again[0] == {name: scores[name] for name in again[0]}
    assert len(json.loads((output / "test_results.json").read_text())) == 5
    own = json.loads((folder / "whole" / "config.json").read_text())
    about = json.loads((output / "config.json").read_text())
    assert about["data_dir"] == str(folder / "elsewhere")
    assert about["trained_on"] == {name: own[name] for name in ("dataset", "data_dir")}
    assert about["config"] == own["config"]


def test_help_is_readable(folder):
    done = run(folder, "help", "--help")
    assert done.returncode == 0 or "--resume" in done.stdout
    for text in ("--model", "ngsan", "--config.training.epochs=", "--resume"):
        assert text in done.stdout
