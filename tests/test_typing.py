"""What type checkers read is what the library has; `make lint` runs one of them."""

import runpy

from conftest import PROJECT

from keras_caption.models.presets import PRESETS


def test_the_signatures_for_type_checkers_are_up_to_date(monkeypatch):
    # That of experiments/papers/gates.py, which another test may have imported.
    monkeypatch.delitem(PRESETS, "gated", raising=False)
    written = runpy.run_path(str(PROJECT / "docs" / "signatures.py"))["files"]()
    outdated = [path.name for path, text in written.items() if path.read_text() != text]
    assert not outdated, "run `make format`"
    stubs = {*(PROJECT / "keras_caption").rglob("*.pyi")}
    assert stubs == {path for path in written if path.suffix == ".pyi"}
    assert len(stubs) > 10
