"""The code in the documents runs, and does what they say."""

import collections
import contextlib
import functools
import importlib
import json
import re
import tempfile
from unittest import mock

import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from conftest import PROJECT

import keras_caption as kc
from experiments.results import TABLE, with_tables
from keras_caption.commands import COMMANDS
from keras_caption.datasets.registry import DATASETS
from keras_caption.models.attention import GATES
from keras_caption.models.presets import PRESETS
from keras_caption.tasks import TASKS


def run(cells, name):
    """Runs pieces of code one after the other; returns their variables."""
    variables = {"__name__": "documents"}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"{name}, code {number}", "exec"), variables)
    return variables


@pytest.fixture
def registries():
    """Undoes what documents register."""
    kinds = kc.inputs.KINDS.copy()
    with contextlib.ExitStack() as stack:
        for table in (GATES, PRESETS, DATASETS, TASKS):
            stack.enter_context(mock.patch.dict(table))
        yield
    kc.inputs.KINDS[:] = kinds


def test_first_ten_minutes(tmp_path, monkeypatch):
    (tmp_path / "saved_models").symlink_to(PROJECT / "saved_models")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    notebook = PROJECT / "docs" / "first_ten_minutes.ipynb"
    cells = json.loads(notebook.read_text())["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    found = run(code, notebook)
    assert found["captions"] == ["a big red square is larger than a blue square"]
    losses = found["history"]["loss"]
    assert losses[-1] < 0.9 * losses[0]
    assert np.isfinite(found["rewards"]).all()
    served = found["answer"]["captions"][0].numpy().decode()
    assert served
    assert set(served.split()) <= set(found["vocabulary"].words)
    assert found["folder"].parent == tmp_path


def test_examples_of_contributing(tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)
    text = (PROJECT / "CONTRIBUTING.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = run(code, "CONTRIBUTING.md")
    for model in found["gated"]:
        layers = model._flatten_layers()
        assert any(isinstance(layer, found["HighwayGate"]) for layer in layers)
    assert found["tokens"].shape == found["of_regions"].shape == (1, 4)
    assert found["of_sounds"].shape == (2, 4)
    loaded, saved = found["loaded"], found["model"]
    assert loaded.get_config() == saved.get_config()
    for ours, theirs in zip(loaded.get_weights(), saved.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    words = {"a", "dot", "on", "the", "left", "right"}
    assert set(found["vocabulary"].words[4:]) == words
    assert found["inputs"]["regions"].shape == (2, 1, 8)
    assert kc.tasks.of_model("counter") is found["Counting"]


PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "docs/results/*.md", "tests/oracles/*.md")
    for path in PROJECT.glob(pattern)
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", t.lower()).strip().replace(" ", "-") for t in titles
    }


def test_links():
    broken = []
    for page in PAGES:
        for target in LINK.findall(FENCE.sub("", page.read_text())):
            if re.match(r"https?:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append(f"{page.relative_to(PROJECT)}: {target}")
    assert not broken


def test_the_readme_leads_to_every_page():
    text = (PROJECT / "README.md").read_text()
    assert len(text.splitlines()) <= 200
    linked = {(PROJECT / x.partition("#")[0]).resolve() for x in LINK.findall(text)}
    assert {p for p in PAGES if p.parent == PROJECT / "docs"} <= linked


def test_tables_of_results_are_those_of_the_files():
    shown = set()
    for page in (PROJECT / "docs" / "results").glob("*.md"):
        text = page.read_text()
        assert with_tables(text) == text, f"{page.name}: run experiments/results.py"
        shown |= {match["file"] for match in TABLE.finditer(text)}
        for row in re.findall(r"^\|(.*)\|$", text, re.MULTILINE):
            first, *others = row.split("|")
            # A page has room for some 120 characters, and wraps labels only.
            assert min(len(first), 40) + sum(map(len, others)) <= 120, row
    assert shown == {path.name for path in PROJECT.glob("docs/results/*.csv")}


NAMES = re.compile(r"\bkc((?:\.\w+)+)")


def test_code_in_documents_names_what_exists():
    for page in PAGES:
        for kind, code in FENCE.findall(page.read_text()):
            if kind == "python":
                compile(code, page.name, "exec")
                for names in NAMES.findall(code):
                    functools.reduce(getattr, names.split(".")[1:], kc)


def test_options_in_documents_exist(capsys):
    """Every `--option` of a command in a document is in the help of that command."""
    used = collections.defaultdict(set)
    for page in PAGES:
        for _, code in FENCE.findall(page.read_text()):
            for line in code.replace("\\\n", " ").splitlines():
                program = re.search(
                    r"keras-caption (\w+)|python experiments/([\w/]+)\.py", line
                )
                if program:
                    name = program[1] or program[2]
                    used[name] |= set(re.findall(r" (--[a-z]\w*)(?![\w.])", line))
    for name, options in used.items():
        if name not in COMMANDS:
            continue
        command = importlib.import_module(f"keras_caption.commands.{name}")
        for task in ([], *([x] for x in getattr(command, "TASKS", ()))):
            with pytest.raises(SystemExit):
                command.main([*task, "--help"])
        known = set(re.findall(r"--\w+", capsys.readouterr().out))
        if name == "bulk":
            known |= {f"--{x}" for x in PipelineOptions().get_all_options()}
        assert options <= known, f"{name} has no {options - known}"
    assert {"run", "caption", "prepare", "translate", "answer"} <= used.keys()
