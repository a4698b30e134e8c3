"""The quick tests, those of `make test`, touch every promise and every mechanism."""

import inspect
import re

import pytest
from conftest import ALL_TESTS, PROJECT
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
    "names only": "decoding/test_evidence",
    "caption my_photo.jpg": "commands/test_caption",
    "answer my_photo.jpg": "commands/test_answer",
    "your own photos": "prepare/test_own_captions",
    "it resumes": "commands/test_run|batches/test_pipeline.*resumed",
    "report.html": "tasks/test_run_report",
    "keras-caption serve": "serving/test_server",
    "SavedModel": "serving/test_export",
    "TensorFlow\nServing's REST interface": "serving/test_server",
    "ensembles": "models/test_ensemble",
    "the papers' tables": "experiments/test_tables",
    "checkpoints of other toolkits": "convert/",
    "by the million": "bulk/test_bulk",
    "which files can be read": "formats/",
    "attention of each word": "tasks/test_figures|demo/test_page",
    "an error names a": "test_wheel",
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
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
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
