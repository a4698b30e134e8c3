"""The code in the documents runs, and does what they say."""

import json
import tempfile

import numpy as np
from conftest import PROJECT


def run_notebook(path):
    """The variables that a notebook ends with."""
    cells = json.loads(path.read_text())["cells"]
    variables = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"{path}, {cell['id']}", "exec")
            exec(code, variables)
    return variables


def test_first_ten_minutes(tmp_path, monkeypatch):
    (tmp_path / "saved_models").symlink_to(PROJECT / "saved_models")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = run_notebook(PROJECT / "docs" / "first_ten_minutes.ipynb")
    assert found["captions"] == ["a big red square is larger than a blue square"]
    losses = found["history"]["loss"]
    assert losses[-1] < 0.9 * losses[0]
    assert np.isfinite(found["rewards"]).all()
    served = found["answer"]["captions"][0].numpy().decode()
    assert served
    assert set(served.split()) <= set(found["vocabulary"].words)
    assert found["folder"].parent == tmp_path
