"""The quick tests, those of `make test`, touch every promise and every mechanism."""

import inspect
import re
import types

import division
import pytest
from conftest import ALL_TESTS, PROJECT
from counts import Counts
from durations import LIMIT, SLOW, read_seconds

from keras_caption import layers

# From words of the README to the tests that hold what they promise.
PROMISES = {
    "mechanisms of four papers as layers": "layers/test_contract",
    "captioning of images": "models/test_captioner",
    "videos": "models/test_video",
    "translation": "models/test_translators",
    "visual question": "models/test_mcan",
    "train": "training/test_training",
    "kc.training.SelfCritical": "training/test_self_critical",
    "SCST": "rewards/test_cider_d",
    "evaluate": "evaluation/test_caption_metrics",
    "save": "models/test_saved_models",
    "beam search": "decoding/test_decoding",
    "mentions only": "objects/test_evidence",
    "caption my_photo.jpg": "commands/test_caption",
    "answer my_photo.jpg": "commands/test_answer|models/test_mcan",
    "your own photos": "prepare/test_own_captions",
    "run resumes": "commands/test_run|batches/test_pipeline.*resumed",
    "report.html": "tasks/test_run_report",
    "keras-caption serve": "serving/test_server",
    "SavedModel": "serving/test_export|models/test_captioner.*test_export",
    "TensorFlow Serving's REST interface": "serving/test_server",
    "ensembles": "models/test_ensemble",
    "the papers' tables": "experiments/test_tables",
    "checkpoints of other toolkits": "convert/",
    "by the million": "bulk/|formats/test_record_files",
    "which files can be read": "formats/",
    "attention of each word": "tasks/test_figures|demo/test_page",
    "the error names the command": "test_wheel|test_imports.*extras",
    "Each command has `--help`": "test_imports.*help",
}


@pytest.fixture
def quick(request):
    """The names of all quick tests; all tests have to be collected."""
    collected = request.config.stash[ALL_TESTS]
    files = {name.partition("::")[0] for name in collected}
    missing = {
        path.relative_to(PROJECT).as_posix()
        for path in (PROJECT / "tests").rglob("test_*.py")
    } - files
    if missing:
        pytest.skip(f"{len(missing)} files of tests are not collected")
    return [name for name, is_slow in collected.items() if not is_slow]


def test_each_promise_of_the_readme_has_a_quick_test(quick):
    readme = " ".join((PROJECT / "README.md").read_text(encoding="utf-8").split())
    for promise, tests in PROMISES.items():
        assert promise in readme, f"{promise!r} is promised no more"
        assert any(re.match(f"tests/({tests})", name) for name in quick), promise


def is_layer(name):
    return inspect.isclass(getattr(layers, name))


def test_each_mechanism_has_a_quick_test(quick):
    names = [name for name in quick if name.startswith("tests/layers/")]
    for layer in filter(is_layer, layers.__all__):
        assert any(f"[{layer}" in name for name in names), layer


def test_slow_tests_exist_and_are_slow(request, quick):
    listed = read_seconds(SLOW)
    collected = request.config.stash[ALL_TESTS]
    files = {name.partition("::")[0] for name in collected}
    assert not set(listed) - set(collected) - files
    assert min(listed.values()) >= LIMIT


def test_what_moved_is_listed_and_written(tmp_path, monkeypatch, capsys):
    slow, measured = tmp_path / "slow_tests.txt", tmp_path / "durations.txt"
    slow.write_text("# why\n2.50 a::x[1 2]\ninf b\n3.00 c::z\n9.00 gone::y\n")
    measured.write_text("1.00 a::x[1 2]\n2.00 a::y\n0.10 b::x\n8.00 b::y\n3.10 c::z\n")
    monkeypatch.setattr(division, "SLOW", slow)
    monkeypatch.setattr("sys.argv", ["division.py", str(measured), "--write"])
    division.main()
    assert capsys.readouterr().out.splitlines() == [
        "    1.00 s quick now: a::x[1 2]",
        "    2.00 s slow now: a::y",
        "    0.10 s quick now: b::x",
        "2 quick tests take 1 s of processor time, 3 slow ones 13 s.",
    ]
    assert read_seconds(slow) == {"a::y": 2, "b::y": 8, "c::z": 3.1, "gone::y": 9}


def test_a_line_says_how_far_the_tests_are():
    lines = []
    terminal = types.SimpleNamespace(write_line=lines.append)
    plugins = types.SimpleNamespace(getplugin=lambda name: terminal)
    counts = Counts(types.SimpleNamespace(pluginmanager=plugins))
    counts.pytest_xdist_setupnodes([1, 2])
    counts.pytest_xdist_node_collection_finished(range(1200))
    counts.pytest_xdist_node_collection_finished(range(1200))
    assert lines == ["2 processes import and collect the tests", "1,200 tests"]
    for when, failed in ("call", True), ("teardown", False):
        report = types.SimpleNamespace(when=when, failed=failed, nodeid="a::b")
        counts.pytest_runtest_logreport(report)
    assert lines.pop() == "FAILED a::b"
    counts.begin -= 2
    assert counts.line() == "1 of 1,200 tests, 0.5 a second, 1 failed"
    counts.pytest_sessionfinish()
    output = {"dear": {"a::b": 7.0}, "seconds": 1234.0}
    counts.pytest_testnodedown(types.SimpleNamespace(workeroutput=output))
    counts.pytest_terminal_summary()
    assert lines[-2:] == [
        "1,234 s of processor time",
        "7.0 s of it: a::b, which is not in slow_tests.txt",
    ]
