"""Who may import whom: imports run downward only."""

import ast
import pathlib
import sys

import pytest
from conftest import PROJECT

PACKAGE = PROJECT / "keras_caption"
SCRIPTS = {path.stem for path in (PROJECT / "experiments").rglob("*.py")} - {"__init__"}

ABOVE_MODELS = {
    "training",
    "data",
    "evaluation",
    "serving",
    "visualization",
    "convert",
}
ALL = {path.stem for path in PACKAGE.glob("*") if path.name != "__pycache__"}
# What each part of the library never imports.
FORBIDDEN = {
    "layers": ALL - {"layers", "errors", "arguments", "formats"},
    "text": ALL - {"text", "errors", "arguments", "formats"},
    "models": ABOVE_MODELS,
    "decoding": ABOVE_MODELS | {"models"},
    "rewards": ABOVE_MODELS | {"models"},
    "losses": ABOVE_MODELS | {"models"},
    "keras_overrides": ABOVE_MODELS | {"models"},
}


def imports(path, content=None):
    """Full names of what a Python file imports, wherever in it."""
    for node in ast.walk(ast.parse(content or path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parts_imported(path, content=None):
    """Parts of the library that a file imports."""
    names = (name.split(".") for name in imports(path, content))
    return {name[1] for name in names if name[0] == "keras_caption" and name[1:]}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_imports_run_downward(part):
    folder = PACKAGE / part
    paths = folder.rglob("*.py") if folder.is_dir() else [folder.with_suffix(".py")]
    for path in paths:
        wrong = parts_imported(path) & FORBIDDEN[part]
        assert not wrong, f"{path} imports {', '.join(wrong)}"


def test_the_library_imports_no_script():
    for path in PACKAGE.rglob("*.py"):
        tops = {name.split(".")[0] for name in imports(path)} - sys.stdlib_module_names
        assert not tops & (SCRIPTS | {"experiments"}), path


def test_an_import_is_found_wherever_it_stands():
    content = "def f():\n    from keras_caption import training\n"
    assert parts_imported(pathlib.Path("a.py"), content) == {"training"}
