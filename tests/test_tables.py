"""The papers' tables, of runs that are finished."""

import csv
import json
import pathlib
import subprocess

import pytest

import keras_caption as kc
from experiments import finished, papers
from keras_caption.commands.configuration import make_config
from keras_caption.training.run_directory import describe

PUBLISHED = "paper's CIDEr-D"


def write_run(
    folder, model, cider, objective="cross-entropy", members=None, **settings
):
    """The files of a finished run that tables.py reads.

    Settings have `__` for the dot in their names.
    """
    folder.mkdir(parents=True)
    name = "san" if objective == "ensemble" else model
    changed = {"data.dataset": "coco_objects", "model.name": name}
    changed["model.model_dim"] = 16  # the scale that was chosen for all
    changed |= {k.replace("__", "."): value for k, value in settings.items()}
    about = {
        "model": model,
        **describe(make_config(None, changed)[1], objective),
        "parameters": 1_250_000,
        **({"member_objectives": members} if members else {}),
    }
    write(folder, about, cider)


def write(folder, about, cider):
    folder.mkdir(parents=True, exist_ok=True)
    scores = dict.fromkeys(kc.evaluation.METRICS[:-1], cider / 200)
    (folder / "config.json").write_text(json.dumps(about))
    scores = {**scores, "CIDEr-D": cider / 100, "statements": {}}
    (folder / "test_scores.json").write_text(json.dumps(scores))


@pytest.fixture
def runs(tmp_path):
    for seed, cider in enumerate((70.0, 72.0, 74.0)):
        write_run(tmp_path / f"san_{seed}", "san", cider, seed=seed)
    write_run(tmp_path / "san_0" / "scst", "san", 80.0, "self-critical")
    write_run(tmp_path / "deep", "san", 60.0, model__num_layers=4)
    four = " + ".join(["aoanet"] * 4)
    for members in ("cross-entropy", "self-critical"):
        write_run(tmp_path / members, four, 75.0, "ensemble", [members] * 4)
    both = ["cross-entropy", *["self-critical"] * 3]
    write_run(tmp_path / "mixed", four, 1.0, "ensemble", both)
    write_run(tmp_path / "two", "aoanet + aoanet", 1.0, "ensemble", both[1:3])
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
    # Only an ensemble of four carries the scores of one, each after its own training.
    four = "AoANet, ensemble of 4 (aoanet)"
    for row, published in (four, "122.7"), (f"{four} + SCST", "132.0"):
        assert ensembles[row]["CIDEr-D"] == "75.0"
        assert ensembles[row][PUBLISHED] == published
    assert ensembles["AoANet (aoanet)"][PUBLISHED] == "119.8"
    assert ensembles["GCN-LSTM"]["paper's SPICE"] == "20.9"  # not a model of ours
    two, four = "num_layers=2", "num_layers=4"
    assert depths[f"SAN (san), {two}"]["CIDEr-D"] == "72.0 ± 2.0"
    assert depths[f"SAN (san), {two}"][PUBLISHED] == ""
    assert depths[f"SAN (san), {two} + SCST"]["paper's parameters"] == "25.5"
    assert depths[f"SAN (san), {four}"]["CIDEr-D"] == "60.0"
    assert depths[f"SAN (san), {four} + SCST"][PUBLISHED] == "128.6"
    assert norms["SAN (san)"]["CIDEr-D"] == "72.0 ± 2.0"
    assert norms["SAN (san)"]["SPICE"] == "n/a"
    assert norms["SAN (san)"]["seeds"] == "3"
    assert norms["SAN (san)"]["parameters"] == "1.25M"
    assert norms["SAN (san) + SCST"]["CIDEr-D"] == "80.0"
    assert norms["BN (nsan_batch_affine) + SCST"][PUBLISHED] == "129.4"  # no run
    assert "rows with + SCST are, all others are after cross-entropy" in done.stdout
    with open(path, newline="") as file:
        table = {(row["table"], row["row"]): row for row in csv.DictReader(file)}
    row = table["NG-SAN, Table 2: coco_objects", "SAN (san)"]
    assert (row["seeds"], float(row["CIDEr-D"])) == ("3", pytest.approx(72))
    assert (row["objective"], row["published CIDEr-D"]) == ("cross-entropy", "")
    assert float(row["CIDEr-D deviation"]) == pytest.approx(2)
    row = table["NG-SAN, Table 2: coco_objects", "SAN (san) + SCST"]
    assert (row["published CIDEr-D"], row["CIDEr-D deviation"]) == ("128.6", "")


def earlier(model, **values):
    """The `config.json` of an earlier version."""
    decoding = {"beam_size": 3, "max_length": 20, "length_penalty": 0.0}
    training = {"epochs": 14, "batch_size": 16, "max_words": 20, "min_count": 5}
    return {
        "model": model,
        "dataset": "coco_objects",
        "data_dir": None,
        "seed": 0,
        "precision": "float32",
        "strategy": "one_device",
        "objective": "cross-entropy",
        "config": {"model": values, "training": training, "decoding": decoding},
        "overrides": {},
    }


def test_a_run_of_a_model_that_has_changed_is_not_a_papers(tmp_path):
    for name, areas in ("old", {"max_area": 2}), ("new", {"image_area": 2}):
        write(tmp_path / name, earlier("area_2x2", **areas), 1.0)
    rows = papers.rows_of("area_4", list(find_runs(tmp_path).values()))
    assert [run["folder"].name for row in rows for run in row.runs] == ["new"]


def test_a_model_that_was_renamed_has_the_row_of_its_new_name(tmp_path):
    write(tmp_path / "old", earlier("area_3x3_2"), 1.0)
    rows = papers.rows_of("area_4", list(find_runs(tmp_path).values()))
    assert [len(row.runs) for row in rows] == [0, 0, 0, 1]


def test_what_is_scored_on_other_data_has_a_table_of_its_own(tmp_path):
    here, there = (
        {"dataset": "prepared", "data_dir": f"prepared/{name}"}
        for name in ("flickr", "coco")
    )
    write(tmp_path, {**earlier("area_2x2"), **here, "trained_on": there}, 20.0)
    [run] = find_runs(tmp_path).values()
    assert run["dataset"] == (
        "prepared from prepared/flickr, trained on prepared from prepared/coco"
    )


def find_runs(folder):
    return finished.find_runs([folder])


OTHERS = {
    "precision": "bfloat16",
    "deterministic": True,
    "strategy": "mirrored",
    "data__data_dir": "coco",
    "data__max_words": 9,
    "training__learning_rate": 0.5,
    "decoding__keep_greedy": True,
    "decoding__block_trigrams": True,
    "evaluation__validation_beam_size": 3,
    "model__query_norm": "batch",
}


@pytest.mark.parametrize("name", OTHERS)
def test_runs_that_differ_in_more_than_their_seed_share_no_row(
    call_script, tmp_path, name
):
    for seed, cider in enumerate((70.0, 72.0)):
        write_run(tmp_path / f"san_{seed}", "san", cider, seed=seed)
    write_run(tmp_path / "other", "san", 1.0, seed=2, **{name: OTHERS[name]})
    done = call_script("experiments/tables.py", tmp_path)
    rows = {label: row["CIDEr-D"] for label, row in lines(done.stdout).items()}
    setting = name.replace("__", ".").removeprefix("model.")
    assert rows == {"san": "71.0 ± 1.4", f"san, {setting}={OTHERS[name]}": "1.0"}
    done = call_script("experiments/tables.py", "--table=ngsan_2", tmp_path)
    assert lines(done.stdout)["SAN (san)"]["CIDEr-D"] == "71.0 ± 1.4"
    skipped = done.stderr.splitlines()[-1]
    assert skipped.startswith("1 runs belong to no row of these tables")
    assert skipped.endswith(f": {tmp_path / 'other'}")


def test_runs_of_earlier_versions_searched_otherwise(call_script, tmp_path):
    write_run(tmp_path / "new", "san", 70.0)
    about = earlier("san", model_dim=16)
    write(tmp_path / "old", about, 60.0)
    done = call_script("experiments/tables.py", tmp_path)
    rows = {label: row["CIDEr-D"] for label, row in lines(done.stdout).items()}
    old = "san, deterministic=None, decoding.keep_greedy=True"
    assert rows == {"san": "70.0", old: "60.0"}


# Numbers of rows, and sums of all scores, of the papers' own tables.
SUMS = {
    "aoanet_1": (24, 7525.9),
    "aoanet_4": (10, 2542.1),
    "area_4": (4, 310.5),
    "ngsan_1": (8, 2488.9),
    "ngsan_2": (5, 1393.7),
    "ngsan_3": (4, 1118.7),
    "ngsan_4": (5, 1598.4),
    "ngsan_6": (11, 3247.6),
    "spatial_1": (2, 395.5),
}


def test_published_tables_are_whole():
    assert papers.TABLES.keys() == SUMS.keys()
    for name, table in papers.TABLES.items():
        total = sum(sum(row.scores.values()) for row in table.rows)
        assert (len(table.rows), round(total, 1)) == SUMS[name]
        models = {row.model for row in table.rows} - {None}
        assert models <= set(kc.models.presets())
        assert papers.notes_of(name)


def test_an_ensemble_of_four_needs_four_seeds(call_script, monkeypatch, tmp_path):
    commands = []

    def succeed(command, check):
        flags = dict(part.split("=", 1) for part in command[3:])
        pathlib.Path(flags["--output_dir"]).mkdir(parents=True, exist_ok=True)
        commands.append(flags)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", succeed)
    command = "experiments/tables.py", "--table=aoanet_1", "--run"
    command = *command, f"--output_dir={tmp_path}", "--", "--scst_epochs=0"
    call_script(*command)
    members = [tmp_path / f"aoanet_{seed}" for seed in range(4)]
    assert [flags["--output_dir"] for flags in commands[:4]] == list(map(str, members))
    [ensemble] = commands[4:]  # of none after self-critical training
    assert ensemble["--ensemble"] == ",".join(map(str, members))
    commands.clear()
    call_script(*command[:3], "--seeds=0,1,2", *command[3:])
    assert len(commands) == 3


def test_rows_of_runs(call_script, runs):
    twice = runs[0], runs[0].parent / "san_0" / "scst"
    done = call_script("experiments/tables.py", *runs, *twice)
    rows = {label: row["CIDEr-D"] for label, row in lines(done.stdout).items()}
    assert {label: x for label, x in rows.items() if "aoanet" not in label} == {
        "san": "72.0 ± 2.0",
        "san + SCST": "80.0",
        "san, num_layers=4": "60.0",
    }
    assert rows["two: aoanet + aoanet"] == "1.0"


def test_unfinished_runs_are_reported(call_script, runs, tmp_path):
    (tmp_path / "san_1" / "test_scores.json").unlink()
    (tmp_path / "deep" / "config.json").write_text('{"model": null}')
    done = call_script("experiments/tables.py", tmp_path, "nowhere")
    assert lines(done.stdout)["san"]["CIDEr-D"] == "72.0 ± 2.8"
    assert "san_1 is skipped, it is no finished run: " in done.stderr
    assert "deep/config.json: objective: Field required" in done.stderr
    assert "There is no run in nowhere." in done.stderr
    assert call_script("experiments/tables.py", "nowhere").returncode == 1


def test_a_table_that_cannot_be_written_is_named(call_script, runs):
    done = call_script("experiments/tables.py", "--csv=nowhere/a.csv", *runs)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: [Errno 2] No such file")


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
