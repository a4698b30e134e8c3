"""The plan of all trainings: what it trains, what it resumes, what it rebuilds."""

import csv
import dataclasses
import pathlib
import shutil
import subprocess
import types

import numpy as np
import pytest
from conftest import PROJECT
from test_tables import write_items, write_run

import keras_caption as kc
from experiments import claims, results
from experiments.papers import archives, plan, runner
from experiments.papers.claimed import CLAIMS, PRIMARY
from experiments.papers.plan import Training
from keras_caption.commands.configuration import make_config
from keras_caption.commands.run_arguments import parse
from keras_caption.models.initializers import INITIALIZATION_VERSION

SCORES = {"san": 70.0, "nsan": 74.0}


def test_planned_commands_are_of_experiments():
    for training in plan.PLAN:
        plan.register(training.setup)
        row = [*training.rows.values()][-1]
        arguments = training.arguments(row, "data")
        # Registered above; nothing is registered twice.
        arguments = [x for x in arguments if not x.startswith("--import=")]
        options, settings = parse(arguments, "")
        config = make_config(options.config, settings)[1]
        assert config["model"]["name"] == row.model
    by_name = {x.csv: (x.table, x.setup) for x in plan.PLAN}
    assert all(by_name[x.csv] == (x.table, x.setup) for x in plan.PLAN)


def test_primary_comparisons_are_planned_with_five_seeds():
    files = {
        claims.name_of(claim, file): file for claim in CLAIMS for file in claim.files
    }
    for name in PRIMARY:
        seeds = [x.seeds for x in plan.PLAN if x.csv == files[name]]
        assert min(seeds) >= claims.LEAST_SEEDS


@pytest.fixture
def documents(tmp_path, monkeypatch):
    """A copy of the results, without archives, and a plan of two cells."""
    docs = tmp_path / "docs" / "results"
    shutil.copytree(results.FOLDER, docs, ignore=shutil.ignore_patterns("runs"))
    shutil.copy(PROJECT / "README.md", tmp_path)
    small = Training(
        *("coco_objects", "captioners", "coco_objects", ("san", "nsan")),
        seeds=2,
        minutes=30,
    )
    for module, name, value in (
        (archives, "FOLDER", docs / "runs"),
        (claims, "FOLDER", docs),
        (results, "FOLDER", docs),
        (results, "README", tmp_path / "README.md"),
        *((x, "PLAN", (small,)) for x in (claims, results, runner)),
    ):
        monkeypatch.setattr(module, name, value)
    claims.archived_rows.cache_clear()
    yield docs
    claims.archived_rows.cache_clear()


@pytest.fixture
def seeds(monkeypatch):
    """Runs of experiments/seeds.py that cost nothing: commands, and what happens."""
    calls = {"commands": [], "outcomes": []}

    class Process:
        def __init__(self, command):
            flags = dict(x[2:].partition("=")[::2] for x in map(str, command[2:]))
            flags["script"] = pathlib.Path(command[1]).name
            calls["commands"].append(flags)
            self.outcome = calls["outcomes"].pop(0) if calls["outcomes"] else 0
            if self.outcome != 0:
                return
            rng = np.random.default_rng(0)
            image = rng.normal(1.0, 1.0, 100)
            if "ensemble" in flags:
                members = ["san"] * len(flags["ensemble"].split(","))
                folder = pathlib.Path(flags["output_dir"])
                of = ["cross-entropy"] * len(members)
                write_run(folder, " + ".join(members), 80.0, "ensemble", of)
                write_items(folder, [*image], [*image])
                return
            at_once = "seeds" in flags
            for seed in flags["seeds" if at_once else "seed"].split(","):
                end = f"_{seed}" if at_once else ""
                folder = pathlib.Path(f"{flags['output_dir']}{end}")
                if folder.exists():  # finished
                    continue
                score = SCORES[flags["model"]]
                layers = int(flags.get("config.model.num_layers", 2))
                data = {"data__data_dir": flags["data_dir"], "seed": int(seed)}
                data["model__num_layers"] = layers
                write_run(folder, flags["model"], score, **data)
                cider = image + score / 100 + rng.normal(0, 0.01, 100)
                write_items(folder, [*cider], [*(cider / 10 - 2)])
                (folder / "history.json").write_text("[]")

        def wait(self, limit=None):
            if self.outcome == "slow" and limit is not None:
                raise subprocess.TimeoutExpired("seeds.py", limit)
            return self.outcome

        def poll(self):
            return None if self.outcome == "slow" else self.outcome

        def terminate(self):
            self.outcome = 143

    expired = subprocess.TimeoutExpired
    stand_in = types.SimpleNamespace(Popen=Process, TimeoutExpired=expired)
    monkeypatch.setattr(runner, "subprocess", stand_in)
    return calls


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {line["row"]: line for line in csv.DictReader(file)}


def test_the_plan_is_worked_through_and_resumed(documents, seeds, tmp_path, capsys):
    def run(**more):
        runner.run_all(tmp_path / "runs", tmp_path / "data", **more)
        return [flags["model"] for flags in seeds["commands"]], capsys.readouterr().out

    # The budget ends in the second cell; the first one is done.
    seeds["outcomes"] = [0, "slow"]
    models, printed = run(budget=1)
    assert models == ["san", "nsan"]
    assert "0 cells done, 2 left, 1.0 hours of a core" in printed
    assert "1 cells done, 1 left, 0.5 hours of a core" in printed
    flags = seeds["commands"][0]
    assert flags["seeds"] == "0,1"
    assert flags["data_dir"] == f"{tmp_path / 'data'}/coco_val2017"
    assert flags["output_dir"] == str(tmp_path / "runs" / "coco_objects" / "san")
    rows = read(documents / "coco_objects.csv")
    assert rows["san"]["CIDEr-D"] == "70.0 ± 0.0"
    assert rows["san"]["initialization"] == str(INITIALIZATION_VERSION)
    assert rows["san"]["commit"]
    assert rows["nsan"]["initialization"] == "1"
    readme = (tmp_path / "README.md").read_text()
    assert "| 70.0 ± 0.0 | 77.4 ± 2.4 † |" in " ".join(readme.split())
    assert results.OLDER.split("\n")[0] in readme
    assert "| san                |" in (documents / "captioning.md").read_text()

    # A failure is reported at the end, and trained again.
    seeds["outcomes"] = [1]
    with pytest.raises(kc.InputError, match="coco_objects/nsan failed"):
        run()
    capsys.readouterr()
    models, _ = run()
    assert models == ["san", "nsan", "nsan", "nsan"]
    assert "74.0 ± 0.0 |" in (tmp_path / "README.md").read_text()
    # Two seeds are too few to be settled.
    row = read(documents / "claims_earlier.csv")["NSA (SAN to N-SAN): coco_objects"]
    assert row["ours"].startswith("+4.0 (+3.")
    assert row["seeds"] == "2"

    # An archive is what the next day begins with, and has no path of this machine.
    shutil.rmtree(tmp_path / "runs")
    models, printed = run()
    assert len(models) == 4
    assert "2 cells done, 0 left, 0.0 hours" in printed
    [training] = runner.PLAN
    with archives.archived_runs(training) as runs:
        folders = {run["config"]["data"]["data_dir"] for run in runs}
    assert folders == {"coco_val2017"}


def test_a_cell_is_in_the_tables_that_it_belongs_to(
    documents, seeds, tmp_path, monkeypatch
):
    [training] = runner.PLAN
    [depths] = {x.csv: x for x in plan.PLAN if x.csv == "ngsan_1"}.values()
    depths = dataclasses.replace(depths, cells=("san_1",), seeds=2)
    for module in (claims, results, runner):
        monkeypatch.setattr(module, "PLAN", (training, depths))
    monkeypatch.setattr(runner, "cells", lambda: [(depths, "san_1")])
    runner.run_all(tmp_path / "runs", tmp_path / "data")
    assert read(documents / "coco_objects.csv")["san"]["initialization"] == "1"
    assert read(documents / "ngsan_1.csv")["SAN (san), num_layers=1"]["seeds"] == "2"
    # Two layers are the usual ones.
    monkeypatch.setattr(runner, "cells", lambda: [(training, "san")])
    runner.run_all(tmp_path / "runs", tmp_path / "data")
    assert read(documents / "coco_objects.csv")["san"]["seeds"] == "2"
    assert read(documents / "ngsan_1.csv")["SAN (san), num_layers=2"]["seeds"] == "2"


def test_seeds_are_scored_together_and_may_be_trained_one_by_one(
    documents, seeds, tmp_path, monkeypatch
):
    [training] = runner.PLAN
    training = dataclasses.replace(
        training, cells=("san",), seeds=5, at_once=False, has_ensembles=True
    )
    for module in (claims, results, runner):
        monkeypatch.setattr(module, "PLAN", (training,))
    seeds["outcomes"] = [0] * 5 + [1]  # of the ensemble
    with pytest.raises(kc.InputError, match="coco_objects/san failed"):
        runner.run_all(tmp_path / "runs", tmp_path / "data")
    assert [flags.get("seed") for flags in seeds["commands"][:5]] == [*"01234"]
    runner.run_all(tmp_path / "runs", tmp_path / "data")
    assert {flags["script"] for flags in seeds["commands"]} == {"run.py"}
    rows = read(documents / "coco_objects.csv")
    assert rows["san"]["seeds"] == "5"
    assert rows["five of san"]["CIDEr-D"] == "80.0"
    assert archives.is_archived(training, "san")
    assert not archives.is_archived(dataclasses.replace(training, seeds=6), "san")


def test_cells_of_an_older_start_are_trained_again(
    documents, seeds, tmp_path, monkeypatch
):
    runner.run_all(tmp_path / "runs", tmp_path / "data")
    later = INITIALIZATION_VERSION + 1
    for module in (archives, results, claims):
        monkeypatch.setattr(module, "INITIALIZATION_VERSION", later)
    results.rebuild()
    assert "| san †" in (documents / "captioning.md").read_text()
    shutil.rmtree(tmp_path / "runs")
    seeds["outcomes"] = [1, 1]
    with pytest.raises(kc.InputError, match="coco_objects/san, coco_objects/nsan"):
        runner.run_all(tmp_path / "runs", tmp_path / "data")


def test_an_image_has_36_distinct_proposals(tmp_path):
    from experiments.papers.proposals import REGIONS, Proposals

    builder, scenes = (
        x(data_dir=str(tmp_path)) for x in (Proposals, kc.synthetic.scenes.Scenes)
    )
    [(_, example)] = builder._generate_examples(0, 1)
    [(_, scene)] = scenes._generate_examples(0, 1)
    assert example["captions"] == scene["captions"]
    regions, boxes = example["regions"], example["boxes"]
    distances = np.abs(regions[:, None] - regions).max(axis=-1)
    assert (distances + np.eye(REGIONS) > 0.01).all()
    assert (boxes[:, 2:] - boxes[:, :2] > 0).all()
    assert boxes.min() >= 0
    assert boxes.max() <= 1
