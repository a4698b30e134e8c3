"""The code in the documents runs, and does what they say."""

import json
import re
import tempfile
from unittest import mock

import numpy as np
import pytest
from conftest import PROJECT

import keras_caption as kc
from keras_caption.data.datasets import DATASETS
from keras_caption.models.attention import GATES
from keras_caption.models.presets import PRESETS


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
    with mock.patch.dict(GATES), mock.patch.dict(PRESETS), mock.patch.dict(DATASETS):
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
