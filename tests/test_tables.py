"""The papers' tables, of runs that are finished."""

import csv
import json
import subprocess

import pytest

import keras_caption as kc


def write_run(folder, model, cider, objective="cross-entropy", **overrides):
    """The files of a finished run that tables.py reads."""
    folder.mkdir(parents=True)
    about = {
        "model": model,
        "dataset": "coco_objects",
        "objective": objective,
        "config": {"model": {"num_layers": 2, **overrides}},
        "overrides": {
            "model.model_dim": 16,  # the scale that was chosen for all
            **{f"model.{k}": v for k, v in overrides.items()},
        },
        "parameters": 1_250_000,
    }
    scores = dict.fromkeys(kc.evaluation.METRICS[:-1], cider / 200)
    (folder / "config.json").write_text(json.dumps(about))
    scores = {**scores, "CIDEr-D": cider / 100, "statements": {}}
    (folder / "test_scores.json").write_text(json.dumps(scores))


@pytest.fixture
def runs(tmp_path):
    for seed, cider in enumerate((70.0, 72.0, 74.0)):
        write_run(tmp_path / f"san_{seed}", "san", cider)
    write_run(tmp_path / "san_0" / "scst", "san", 80.0, "self-critical")
    write_run(tmp_path / "deep", "san", 60.0, num_layers=4)
    write_run(tmp_path / "two", "aoanet + aoanet", 75.0, "ensemble")
    write_run(tmp_path / "other", "aoanet + san", 76.0, "ensemble")
    return sorted(tmp_path.iterdir())


def lines(table):
    """Cells by row, of Markdown."""
    rows = [line.split("|")[1:-1] for line in table.splitlines() if "|" in line]
    cells = [[cell.strip() for cell in row] for row in rows]
    return {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[2:]}


def test_papers_tables(call_script, runs, tmp_path):
    path = tmp_path / "tables.csv"
    done = call_script(
        *("experiments/tables.py", "--table=aoanet_1,ngsan_1,ngsan_2"),
        *(f"--csv={path}", *runs),
    )
    assert done.returncode == 0, done.stderr
    ensembles, depths, norms = map(lines, done.stdout.split("NG-SAN, Table "))
    assert list(ensembles) == ["aoanet", "aoanet + SCST", "two: aoanet + aoanet"]
    assert ensembles["two: aoanet + aoanet"]["CIDEr-D"] == "75.0"
    assert ensembles["two: aoanet + aoanet"]["paper's CIDEr-D"] == "132.0"
    assert depths["san, L = 2"]["CIDEr-D"] == "72.0 ± 2.0"
    assert depths["san, L = 2"]["paper's parameters"] == "25.5"
    assert depths["san, L = 4"]["CIDEr-D"] == "60.0"
    assert depths["san, L = 4 + SCST"]["paper's CIDEr-D"] == "128.6"
    assert norms["san"]["CIDEr-D"] == "72.0 ± 2.0"
    assert norms["san"]["SPICE"] == "n/a"
    assert norms["san"]["parameters"] == "1.2M"
    assert norms["san + SCST"]["CIDEr-D"] == "80.0"
    assert norms["nsan + SCST"] == {
        **dict.fromkeys(norms["san"], ""),
        "": "nsan + SCST",
        "paper's CIDEr-D": "130.8",
    }
    assert norms["nsan_batch"]["CIDEr-D"] == ""  # no run, and nothing published
    with open(path, newline="") as file:
        table = {(row["table"], row["row"]): row for row in csv.DictReader(file)}
    row = table["NG-SAN, Table 2: coco_objects", "san"]
    assert (row["seeds"], float(row["CIDEr-D"])) == ("3", pytest.approx(72))
    assert float(row["CIDEr-D deviation"]) == pytest.approx(2)
    row = table["NG-SAN, Table 2: coco_objects", "san + SCST"]
    assert (row["published CIDEr-D"], row["CIDEr-D deviation"]) == ("128.6", "")


def test_rows_of_runs(call_script, runs):
    twice = runs[0], runs[0].parent / "san_0" / "scst"
    done = call_script("experiments/tables.py", *runs, *twice)
    rows = lines(done.stdout)
    assert {label: row["CIDEr-D"] for label, row in rows.items()} == {
        "san": "72.0 ± 2.0",
        "san + SCST": "80.0",
        "san, num_layers=4": "60.0",
        "two: aoanet + aoanet": "75.0",
        "other: aoanet + san": "76.0",
    }


def test_unfinished_runs_are_reported(call_script, runs, tmp_path):
    (tmp_path / "san_1" / "test_scores.json").unlink()
    (tmp_path / "deep" / "config.json").write_text('{"model": null}')
    done = call_script("experiments/tables.py", tmp_path, "nowhere")
    assert lines(done.stdout)["san"]["CIDEr-D"] == "72.0 ± 2.8"
    assert "san_1 is skipped, it is no finished run: " in done.stderr
    assert "deep/config.json: model: Input should be a valid string" in done.stderr
    assert "There is no run in nowhere." in done.stderr
    assert call_script("experiments/tables.py", "nowhere").returncode == 1


def test_there_is_no_such_table(call_script, runs):
    done = call_script("experiments/tables.py", "--table=ngsan_7", *runs)
    assert done.returncode == 1
    assert "error: there is no table 'ngsan_7': those are aoanet_1," in done.stderr


def test_a_cell_that_fails_ends_it(call_script, monkeypatch, tmp_path):
    commands = []

    def fail(command, check):
        commands.append([str(part) for part in command[1:]])
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, "run", fail)
    folder = tmp_path / "cells" / "spatial_7"
    done = call_script(
        *("experiments/tables.py", "--table=spatial_1", "--run", "--seeds=7,8"),
        *(f"--output_dir={folder.parent}", "--", "--dataset=coco_objects"),
    )
    assert done.returncode == 1
    assert f"spatial_1: 1 of 2, {folder}" in done.stdout
    assert f"error: the run of {folder} failed." in done.stderr
    [[script, *flags]] = commands
    assert script.endswith("experiments/run.py")
    assert {"--resume", "--model=spatial", "--seed=7", f"--output_dir={folder}"} < set(
        flags
    )
    assert flags[-1] == "--dataset=coco_objects"
