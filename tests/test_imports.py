"""Which parts exist, who may import whom, which tests guard a part, and signatures."""

import ast
import graphlib
import importlib
import itertools
import os
import re
import runpy
import subprocess
import sys
import tomllib

import pytest
from conftest import PROJECT

import keras_caption
from keras_caption.base.errors import EXTRAS
from keras_caption.base.old_names import PLACE_OF, place_of
from keras_caption.base.registration import _GIVEN, Registry, give
from keras_caption.commands import COMMANDS

PACKAGE = PROJECT / "keras_caption"
SCRIPTS = PROJECT / "experiments"
ARCHITECTURE = (PROJECT / "ARCHITECTURE.md").read_text()
LEVELS = [
    re.findall(r"[\w/]+", level)
    for level in re.findall(r"^ ?\d+  (.*)$", ARCHITECTURE, flags=re.MULTILINE)
]
LEVEL_OF = {part: number for number, level in enumerate(LEVELS) for part in level}
FILES = sorted(PACKAGE.rglob("*.py"))


def part_of_names(names):
    """The part of a module by the names of its folders: `apps` has several."""
    first, *others = names
    is_app = first == "apps" and others and others[0] not in ("__init__", "register")
    return f"apps/{others[0]}" if is_app else first


def part_of(path):
    return part_of_names(path.relative_to(PACKAGE).with_suffix("").parts)


PARTS = {part_of(path) for path in FILES} - {"__init__"}
APPS = {part for part in PARTS if part.startswith("apps/")}


def imports(content):
    """Full names of what a Python file imports, wherever in it, or reads of a module.

    `import keras_caption as kc` imports what the file reads: `kc.text` and so on. What
    an app gives, and only type checkers import, is left out, see `names_for_checkers`.
    """
    tree = ast.parse(content)
    for_checkers = names_for_checkers(tree)
    nodes = [node for node in ast.walk(tree) if node not in for_checkers]
    modules = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = alias.name
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{modules.get(node.value.id)}.{node.attr}"


def names_for_checkers(tree):
    """Imports from apps within `if TYPE_CHECKING`, and the names that they import."""
    blocks = [x for x in tree.body if isinstance(x, ast.If)]
    blocks = [x for x in blocks if ast.unparse(x.test) == "TYPE_CHECKING"]
    nodes = [x for block in blocks for x in block.body]
    return {
        node: [alias.name for alias in node.names]
        for node in nodes
        if isinstance(node, ast.ImportFrom) and "keras_caption.apps" in node.module
    }


def parts_imported(content):
    """Parts of the library that a Python file imports."""
    names = [place_of(name).split(".") for name in imports(content)]
    return {
        part_of_names(name[1:])
        for name in names
        if name[0] == "keras_caption" and name[1:]
    }


def test_every_part_has_one_level_and_is_described():
    assert sorted(part for level in LEVELS for part in level) == sorted(PARTS)
    described = re.findall(r"^\| `([\w/]+)` \|", ARCHITECTURE, flags=re.MULTILINE)
    assert described == [part for level in LEVELS for part in level]


def test_ten_questions_lead_to_files_in_two_steps():
    section = ARCHITECTURE.partition("## Ten questions")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| .+\? \| `(.+)/` \| `(.+?)`.* \|$", section, re.MULTILINE)
    assert len(rows) == 10
    assert not [x for x in rows if not PACKAGE.joinpath(*x).is_file()]


def test_every_part_has_tests():
    text = (PROJECT / "CONTRIBUTING.md").read_text()
    section = text.partition("### Which tests guard a module\n")[2].partition("\n## ")[
        0
    ]
    rows = re.findall(r"^\| (.+?) \| (`.*`) \|$", section, flags=re.MULTILINE)
    named = {test for _, tests in rows for test in re.findall(r"`(.+?)`", tests)}
    tests = PROJECT / "tests"
    assert not [name for name in named if not (tests / name).exists()]
    in_rows = set(
        re.findall(r"^`([\w/]+)`$", "\n".join(part for part, _ in rows), flags=re.M)
    )
    in_folders = {path.parent.name for path in tests.glob("*/test_*.py")}
    with_folder = {part for part in PARTS if part.rpartition("/")[2] in in_folders}
    assert in_rows | with_folder == PARTS
    assert not in_rows & with_folder
    others = {path.name for path in tests.glob("test_*.py")}
    names = {part.rpartition("/")[2] for part in with_folder}
    others |= {f"{folder}/" for folder in in_folders - names}
    assert not others - named


@pytest.mark.parametrize("part", LEVEL_OF)
def test_imports_run_downward(part):
    not_below = {x for x, level in LEVEL_OF.items() if level <= LEVEL_OF[part]} - {part}
    for path in (path for path in FILES if part_of(path) == part):
        wrong = parts_imported(path.read_text()) & not_below
        assert not wrong, f"{path} imports {wrong}, which is not below {part}"


@pytest.mark.parametrize("part", sorted(PARTS - APPS - {"commands", "export"}))
def test_the_core_imports_no_app(part):
    """Nor does a border, but for exports, which write detectors too."""
    for path in (path for path in FILES if part_of(path) == part):
        wrong = parts_imported(path.read_text()) & {*APPS, "export", "commands"}
        assert not wrong, f"{path} imports {wrong}"


@pytest.mark.parametrize("package", [x for x in _GIVEN if "." in x])
def test_type_checkers_know_what_apps_give(package):
    content = (PROJECT / package.replace(".", "/") / "__init__.py").read_text()
    known = names_for_checkers(ast.parse(content)).values()
    assert sorted(itertools.chain(*known)) == sorted(_GIVEN[package])


def test_no_file_imports_one_that_imports_it():
    names = [path.relative_to(PROJECT).with_suffix("").parts for path in FILES]
    names = [".".join(parts).removesuffix(".__init__") for parts in names]
    graph = {}
    for name, path in zip(names, FILES, strict=True):
        imported = {
            whole if whole in names else whole.rpartition(".")[0]
            for whole in imports(path.read_text())
        }
        graph[name] = imported & set(names) - {name, "keras_caption"}
    graphlib.TopologicalSorter(graph).prepare()


def test_parts_that_are_named_exist():
    paths = [*FILES, *SCRIPTS.rglob("*.py"), *(PROJECT / "tests").rglob("*.py")]
    known = PARTS | {"InputError", "register", "__all__", "__file__", "__path__"}
    known |= {"__version__"}
    unknown = {path: parts_imported(path.read_text()) - known for path in paths}
    assert not {str(path): names for path, names in unknown.items() if names}


@pytest.mark.parametrize(
    "content",
    [
        "def f():\n    from keras_caption import training\n",
        "from keras_caption.training.callbacks import Checkpoint",
        "import keras_caption as kc\ndef f(): kc.training.Checkpoint('x')",
    ],
)
def test_an_import_is_found_wherever_it_stands(content):
    assert parts_imported(content) == {"training"}


WITHOUT_KERAS = """
import sys
for module in ("keras", "tensorflow", {extras}):
    sys.modules[module] = None
import keras_caption_cli
for name in ("--help", {commands}):
    try:
        keras_caption_cli.main([name, "--help"])
    except SystemExit as end:
        assert not end.code, (name, end.code)
"""


def test_help_needs_neither_keras_nor_extras():
    extras, commands = (repr(list(x))[1:-1] for x in (EXTRAS, COMMANDS))
    code = WITHOUT_KERAS.format(extras=extras, commands=commands)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.stderr
    assert all(
        hasattr(
            importlib.import_module(f"keras_caption.commands.{name}"), "make_parser"
        )
        for name in COMMANDS
    )
    assert done.stdout.count("usage: keras-caption") == len(COMMANDS) + 1


REFUSED = """
import sys
sys.modules["keras"] = sys.modules["tensorflow"] = None
import keras_caption_cli
for arguments in sys.stdin.read().splitlines():
    try:
        keras_caption_cli.main(arguments.split())
    except SystemExit as end:
        print(end.code)
"""


def test_refusals_need_no_keras(tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "config.json").write_text("{}")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "report.html").touch()
    (tmp_path / "curves.png").touch()
    refused = {
        "run --config no": "There is no built-in experiment 'no'.",
        "run --start_from no": "There is no saved model no.",
        "run --ensemble ngsan_coco,no": "There is no saved model no.",
        "run --output_dir used": "used holds a run already",
        "run --output_dir own": "own holds report.html, which a run would replace",
        "run --output_dir own --resume": "own holds report.html, which a run would",
        "run --output_dir curves.png": "curves.png is not a folder",
        "figure curves no": "curves.png exists already",
        "figure attention no": "There is no folder no.",
        "figure attention used": "used/config.json: objective",
        "figure position a b": "The figure position shows one run, not 2.",
        "figure size no": "There is no saved model no.",
        "figure size no --images 1": "--images is for captions and attention.",
        "report used": "used holds no finished run.",
        "report a b c": "At most two runs can be compared.",
    }
    done = subprocess.run(
        [sys.executable, "-c", REFUSED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        input="\n".join(refused),
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(refused), done.stderr
    for line, (arguments, message) in zip(lines, refused.items(), strict=True):
        assert line.startswith("error: "), arguments
        assert message in line, arguments


REGISTERED = """
import contextlib
import sys
import keras_caption_cli, keras_caption
from keras_caption.serving import AsyncClient, Client, Limits, ServerError
assert not {{"keras", "tensorflow"}} & {{*sys.modules}}
sys.modules["matplotlib"] = None
with contextlib.suppress(ImportError):
    import {first}
import keras
model = keras.models.load_model("saved_models/ngsan_scenes.keras")
assert type(model) is keras_caption.models.NGSAN
"""


@pytest.mark.parametrize(
    "first",
    [
        *("keras", "tensorflow", "keras_caption.text"),
        "keras_caption.apps.report.visualization.captions",  # which fails
    ],
)
def test_the_client_needs_no_keras_and_keras_knows_all_models(first):
    code = REGISTERED.format(first=first)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PROJECT)


@pytest.mark.parametrize(
    ("old", "new"),
    [*PLACE_OF.items(), ("serving.client", "apps.serve.client")],
)
def test_modules_are_imported_by_their_old_names(old, new):
    module = importlib.import_module(f"keras_caption.{old}")
    assert module is importlib.import_module(f"keras_caption.{new}")
    assert module.__spec__.name == module.__name__ == f"keras_caption.{new}"
    if old in PLACE_OF:
        assert getattr(keras_caption, old) is module


def test_extras_are_declared_and_described():
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"].keys() - {"docs", "test"}
    text = (PROJECT / "docs" / "library.md").read_text().partition("## Extras")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == extras
    assert set(EXTRAS.values()) <= extras


def test_the_library_names_no_script():
    scripts = "|".join(path.stem for path in SCRIPTS.glob("[!_]*.py"))
    pattern = re.compile(rf"\bexperiments[/.]\w|\b({scripts})\.py\b")
    named = {path: pattern.findall(path.read_text()) for path in FILES}
    assert not [str(path) for path, names in named.items() if names]


def too_long(content, most=7):
    """Functions of a Python file with many parameters, constructors aside."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.FunctionDef) and node.name != "__init__":
            given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            if len({arg.arg for arg in given} - {"self", "cls"}) > most:
                yield node.name


def test_functions_have_at_most_seven_parameters():
    paths = [*FILES, *SCRIPTS.rglob("*.py")]
    long = {path: list(too_long(path.read_text())) for path in paths}
    assert not {str(path): names for path, names in long.items() if names}
    assert list(too_long("def f(self, a, b, /, *, c): pass", most=2)) == ["f"]


def test_mutations_name_texts_and_tests_that_there_are():
    path = PROJECT / "tests" / "endurance" / "mutations.py"
    table = runpy.run_path(str(path))["MUTATIONS"]
    assert len(table) >= 50
    for (file, tests), text, _ in table:
        assert (PACKAGE / file).read_text().count(text) == 1, (file, text)
        assert (PROJECT / "tests" / tests.split("::")[0].split()[0]).is_file(), tests


def test_what_an_app_gave_can_be_deleted(monkeypatch):
    monkeypatch.setitem(_GIVEN, "numbers", {})
    give("numbers", {"pi": "math:pi", "e": "math:e"})
    numbers = Registry("numbers", {"one": 1})
    assert numbers["pi"] > numbers["one"]
    del numbers["pi"], numbers["e"]  # imported, and not
    assert [*numbers] == ["one"]
    with pytest.raises(KeyError):
        numbers["pi"]
    with pytest.raises(KeyError):
        del numbers["pi"]
