"""The code in the documents runs, and does what they say."""

import collections
import contextlib
import csv
import functools
import importlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import PROJECT, tiny
from keras_caption.papers import TABLES as PAPERS
from yolox_file import white_yolox

import keras_caption as kc
from experiments import claims, results
from experiments.papers.plan import PLAN
from keras_caption.apps.objects import detectors
from keras_caption.commands import COMMANDS, command_line, configuration, run_arguments
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


def test_own_mechanism(tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    notebook = PROJECT / "docs" / "own_mechanism.ipynb"
    cells = json.loads(notebook.read_text())["cells"]
    first, *code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    shown = "TRAIN, EPOCHS = 3000, 4"
    assert shown in first
    found = run([first.replace(shown, "TRAIN, EPOCHS = 32, 3"), *code], notebook)
    assert found["scores"].keys() == {"plain", "gated"}
    layers = found["gated"]._flatten_layers()
    assert any(isinstance(layer, found["HighwayGate"]) for layer in layers)
    assert (found["folder"] / "attention.png").exists()


@pytest.mark.parametrize("name", ["first_ten_minutes", "own_mechanism"])
def test_notebooks_have_their_outputs(name):
    cells = json.loads((PROJECT / "docs" / f"{name}.ipynb").read_text())["cells"]
    outputs = [x for c in cells if c["cell_type"] == "code" for x in c["outputs"]]
    assert any("image/png" in x.get("data", {}) for x in outputs)
    assert any(x["output_type"] == "stream" for x in outputs)


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
MARKED_FENCE = re.compile(
    r"(?:^<!-- not run: (.+?) -->\n)?" + FENCE.pattern, re.MULTILINE | re.DOTALL
)


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


def test_the_site_leads_to_every_page_and_to_the_api_of_every_package():
    config = tomllib.loads((PROJECT / "docs" / "zensical.toml").read_text())
    paths = re.findall(r"'([\w/]+\.md)'", str(config["nav"]))
    pages = {str(page.relative_to(PROJECT)) for page in PAGES}
    packages = {f"api/{name}.md" for name in kc.__all__ if name != "InputError"}
    notebooks = {f"docs/{x.stem}.md" for x in PROJECT.glob("docs/*.ipynb")}
    assert {*paths} == pages | packages | notebooks


REBUILD = "run experiments/results.py"


def test_tables_of_results_are_those_of_the_files():
    shown = set()
    for page in (PROJECT / "docs" / "results").glob("*.md"):
        text = page.read_text()
        assert results.with_tables(text) == text, f"{page.name}: {REBUILD}"
        shown |= {match["file"] for match in results.TABLE.finditer(text)}
        for row in re.findall(r"^\|(.*)\|$", text, re.MULTILINE):
            first, *others = row.split("|")
            # A page has room for some 120 characters, and wraps labels and sentences.
            widths = [len(x) if len(x) < 40 else 20 for x in others]
            assert min(len(first), 40) + sum(widths) <= 120, row
    files = {path.name for path in PROJECT.glob("docs/results/*.csv")}
    planned = {"effects_drift.csv", *(f"{x.csv}.csv" for x in PLAN)}
    assert files <= shown <= files | planned
    lines = {**claims.tables(), "plan": [*map(results.planned, PLAN)]}
    for name, expected in lines.items():
        with open(PROJECT / "docs" / "results" / f"{name}.csv", newline="") as file:
            assert [*csv.DictReader(file)] == expected, REBUILD


NUMBER = re.compile(r"(?<![\w.`-])\d[\d,]*(?:\.\d+)?(?![\w`])")
# Numbers of README that are no results.
FACTS = {
    "3": "of Keras",
    "3.11": "of Python",
    "4": "GB of disk",
    "6": "GB of disk",
    "15": "MB of the detector",
    "113,287": "the papers' training images",
}


def test_numbers_of_readme_are_those_of_the_pages_that_it_links_to():
    text = (PROJECT / "README.md").read_text()
    assert results.with_captioners(text) == text, REBUILD
    text = re.sub(r"```.*?```|<!-- .*?<!-- end of table -->", "", text, flags=re.DOTALL)
    text = re.sub(r"(?:CVPR|ICCV|ICML|ESANN) \d{4}", "", text)
    published = {x for t in PAPERS.values() for y in t.rows for x in y.scores.values()}
    of_claims = [line for lines in claims.tables().values() for line in lines]
    effects = {
        f"{abs(float(line[name].split()[0])):.0f}"
        for line in of_claims
        for name in ("ours", "log-probability")
        if line.get(name)
    }
    for paragraph in re.split(r"\n\s*\n|\n(?=\|)", text):
        links = [x.partition("#")[0] for x in LINK.findall(paragraph)]
        pages = [(PROJECT / x).read_text() for x in links if x.endswith(".md")]
        sources = {*FACTS, *(x for page in pages for x in NUMBER.findall(page))}
        if paragraph.startswith("|"):
            sources |= {str(x) for x in published}
        if "docs/results/effects.md" in links:
            sources |= effects
        numbers = NUMBER.findall(re.sub(r"\]\([^)]*\)", "]", paragraph))
        unknown = {x.rstrip(",") for x in numbers} - sources
        assert not unknown, f"{unknown} of: {paragraph}"


# === Snippets ===

# Code that runs before the snippets that have a text.
BEFORE = {
    "": """
import itertools
import keras, numpy as np, tensorflow as tf
import keras_caption as kc

texts = [["A photo of a dog.", "A dog and a cat."]] * 32  # a batch
captions = sum(texts, [])
splits = ["train"] * 32
regions = np.random.default_rng(0).normal(size=(32, 3, 2048)).astype("float32")
boxes = np.tile(np.float32([0.1, 0.2, 0.5, 0.9]), (32, 3, 1))
r, b = regions[:2], boxes[:2]
tokens = np.tile(np.int32([kc.text.BOS, 4, 5, 6, kc.text.EOS]), (2, 2, 1))
references = tokens[..., 1:]
batch = {"regions": r, "boxes": b, "tokens": tokens, "references": references}
batches = tf.data.Dataset.from_tensors(batch)
reward = kc.rewards.CiderD.from_references(references)
""",
    "kc.datasets.from_arrays(": """
vocabulary = kc.text.Vocabulary.build(captions)
model = kc.models.create("ngsan", vocabulary=vocabulary, region_dim=2048)
""",
    '"frames": f': "f, mask = np.zeros((2, 4, 1000), 'float32'), np.ones((2, 4), bool)",
    "model.decoding  #": """
model = kc.models.create("ngsan", vocabulary=vocabulary)
inputs = {"regions": r[:1], "boxes": b[:1]}
paths, open_photo = ["photo.jpg"], lambda path: inputs
""",
    '"transformer.keras"': """
kc.models.create("ngsan", vocabulary_size=9).save("transformer.keras")
""",
    'Path("photo.jpg").read_bytes()': """
import pathlib
from PIL import Image
from yolox_file import photo
Image.fromarray(photo(416, 208, [(1, 1)])).save("photo.jpg")
words = kc.text.WordTokenizer(["ein", "Hund"])
kc.models.create("transformer_tiny", source=words, target=words).save("en_de.keras")
""",
    '"aoanet.keras"': """
kc.models.create("aoanet", vocabulary=kc.text.Vocabulary(["dog"])).save("aoanet.keras")
att, masks = r, np.ones((2, 3), bool)
""",
    'load("saved_models/mcan_gsa_scene_questions': """
kc.models.create(
    "mcan_gsa",
    answers=["circle", "heart", "star"],
    question=kc.text.QuestionTokenizer(["what", "red"]),
    region_dim=128,
).save_to_preset("saved_models/mcan_gsa_scene_questions")
""",
    'load("saved_models/transformer_tiny_scene_sentences': """
words = kc.text.WordTokenizer(["the", "red", "star"])
model = kc.models.create("transformer_tiny", source=words, target=words)
model.save_to_preset("saved_models/transformer_tiny_scene_sentences")
""",
}


def snippets(page, language):
    """The code of a page in a language, but for what it says is not run, and why."""
    return [
        code
        for reason, kind, code in MARKED_FENCE.findall(page.read_text())
        if kind == language and not reason
    ]


@pytest.fixture
def quickly(monkeypatch):
    """Small models, few steps and tokens, and no graphs, whose compilation is slow.

    The detector YOLOX-Nano is another network, which no test downloads.
    """
    create, fit = kc.models.create, keras.Model.fit

    def create_small(name, **options):
        known = kc.models.arguments(name)
        sizes = {x: size for x, size in tiny(name, num_layers=1).items() if x in known}
        model = create(name, **{**sizes, **options})
        if isinstance(model, kc.models.Seq2Seq):
            model.decoding = model.decoding.override(max_length=5)
        return model

    def fit_shortly(model, *args, **options):
        if "steps_per_epoch" in options:
            options["steps_per_epoch"] = 1
        return fit(model, *args, **options)

    monkeypatch.setattr(detectors, "download_yolox", lambda: None)
    monkeypatch.setattr(
        detectors, "convert_yolox", lambda _: white_yolox(16, 1.0, None)
    )
    monkeypatch.setattr(kc.models, "create", create_small)
    monkeypatch.setattr(keras.Model, "fit", fit_shortly)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if snippets(p, "python") and p.name != "CONTRIBUTING.md"],
    ids=lambda page: page.name,
)
def test_snippets_of_python_run(page, tmp_path, monkeypatch, capsys, quickly):
    models = tmp_path / "saved_models"
    models.mkdir()
    for path in (PROJECT / "saved_models").glob("*.keras"):
        (models / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    variables = {"__name__": "documents"}
    for number, code in enumerate(snippets(page, "python"), start=1):
        before = [setup for text, setup in BEFORE.items() if text in code]
        for part in (*before, code):
            exec(compile(part, f"{page}, snippet {number}", "exec"), variables)
        said = re.search(r"^print\(.*\n# (.*)", code, re.MULTILINE)
        assert said is None or said[1] in capsys.readouterr().out


NAMES = re.compile(r"\bkc((?:\.\w+)+)")


def test_snippets_that_do_not_run_name_what_exists():
    for page in PAGES:
        for kind, code in FENCE.findall(page.read_text()):
            if kind == "python":
                compile(code, page.name, "exec")
                for names in NAMES.findall(code):
                    functools.reduce(getattr, names.split(".")[1:], kc)


# A program that records how it is called.
RECORDER = """#!/bin/bash
printf '%s\\0' "${0##*/}" "$@" >> "$RECORD"; printf '\\n' >> "$RECORD"
"""


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """What the snippets of all pages call in a shell: pairs of page and arguments."""
    folder = tmp_path_factory.mktemp("shell")
    for program in ("python", "keras-caption", "make", "pip"):
        (folder / program).write_text(RECORDER)
        (folder / program).chmod(0o755)
    record, calls = folder / "record", {}
    for page in PAGES:
        record.write_text("")
        project = tmp_path_factory.mktemp("project")
        (project / ".venv").mkdir()
        (project / ".venv" / "bin").symlink_to(folder)
        # Loops, variables and functions of a page hold for all that follows in it.
        subprocess.run(
            ["/bin/bash", "-c", "\n".join(snippets(page, "sh"))],
            cwd=project,
            env={"PATH": str(folder), "RECORD": str(record)},
            stderr=subprocess.DEVNULL,
            check=False,
        )
        for line in record.read_text().split("\0\n")[:-1]:
            alike = re.sub(r"\d|(?<=--output_dir\0)[^\0]+", "0", line)  # but for a seed
            calls.setdefault(alike, (page.name, *line.split("\0")))
    return list(calls.values())


class ParsedError(Exception):
    """Ends a command once its arguments are known to be right."""


def stopping(function):
    def parse(*args, **kwargs):
        function(*args, **kwargs)
        raise ParsedError

    return parse


def command_of(program, arguments):
    """The function of a command, or `None`, and its arguments."""
    if program == "python" and arguments[0].startswith("experiments/"):
        name, *rest = arguments
        if name != "experiments/run.py":
            module = name.removesuffix(".py").replace("/", ".")
            return importlib.import_module(module).main, rest
        program, arguments = "keras-caption", ["run", *rest]
    if program != "keras-caption":
        return None, arguments
    name, *rest = arguments
    assert name in COMMANDS
    return importlib.import_module(f"keras_caption.commands.{name}").main, rest


def test_commands_in_documents_have_the_arguments_they_are_given(
    called, monkeypatch, tmp_path
):
    (tmp_path / "experiments").symlink_to(PROJECT / "experiments")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command_line, "run_file", lambda path: None)  # of --import
    # Imported first, so that every module that has the function by its name gets the
    # one that stops, and gives it back: another test may have imported them before.
    for _, program, *arguments in called:
        command_of(program, arguments)
    run = importlib.import_module("keras_caption.commands.run")
    make_config = configuration.make_config
    for name, module in sys.modules.items():
        ours = name.startswith(("keras_caption.", "experiments."))
        if ours and getattr(module, "make_config", None) is make_config:
            monkeypatch.setattr(module, "make_config", stopping(make_config))
    for name in ("parse_args", "parse_intermixed_args"):
        parse = stopping(getattr(command_line.Parser, name))
        monkeypatch.setattr(command_line.Parser, name, parse)
    # Commands ask first for the files and runs that they are given.
    monkeypatch.setattr(run_arguments, "check_files", lambda options: None)
    monkeypatch.setattr(command_line.Parser, "_checked", lambda self, options: options)
    # `caption` and `answer` ask first whether the first file that they name exists.
    for _, _, *arguments in called:
        if arguments[:1] in (["caption"], ["answer"]):
            (tmp_path / arguments[1]).mkdir(parents=True, exist_ok=True)
    # Options that `bulk` does not know are those of Beam's runners.
    bulk = importlib.import_module("keras_caption.commands.bulk")
    monkeypatch.setattr(bulk, "import_library", stopping(lambda: None))
    monkeypatch.setattr(kc.bulk, "run", stopping(lambda *args, **kwargs: None))
    makefile = (PROJECT / "Makefile").read_text()
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    extras = extras["project"]["optional-dependencies"]
    seen = collections.Counter()
    for page, program, *arguments in called:
        command, rest = command_of(program, arguments)
        if program == "make":
            assert all(f"\n{target}:" in makefile for target in arguments), page
        if program == "pip":
            for names in re.findall(
                r"(?:\.|keras-caption)\[([\w,]+)\]", str(arguments)
            ):
                assert {*names.split(",")} <= extras.keys(), page
        if command is None:
            continue
        calls = [(command, rest)]
        if "--" in rest:  # what follows is for run.py
            end = rest.index("--")
            calls = [(command, rest[:end]), (run.main, rest[end + 1 :])]
        for command, rest in calls:
            module = command.__module__
            if command is run.main and "--import" in rest:  # of what is not there
                command = stopping(functools.partial(run_arguments.parse, rest))
                rest = run.__doc__
            try:
                command(rest)
            except ParsedError:
                seen[module] += 1
            except (kc.InputError, SystemExit) as error:
                pytest.fail(f"{page}: {' '.join([program, *arguments])}: {error}")
    assert {f"keras_caption.commands.{name}" for name in COMMANDS} <= seen.keys()
