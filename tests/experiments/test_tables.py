"""The papers' tables, of runs that are finished."""

import csv
import json
import pathlib
import subprocess

import numpy as np
import pytest

import keras_caption as kc
from experiments.papers import finished, rows
from experiments.papers.effects import EFFECTS
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
    scores = dict.fromkeys(kc.evaluation.METRICS[:-1], cider / 200)
    write_files(folder, about, {**scores, "CIDEr-D": cider / 100, "statements": {}})


def write_files(folder, about, scores):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "test_scores.json").write_text(json.dumps(scores))


def write_translation(folder, model, bleu, tokenizer="subwords", **settings):
    """The files of a finished run of translation; `target` is one of its settings."""
    lengths = 256 if tokenizer == "characters" else 64
    changed = {
        "model.name": model,
        "data.dataset": "parallel",
        "data.data_dir": "multi30k",
        "data.tokenizer": tokenizer,
        "data.max_tokens": lengths,
        "decoding.max_length": lengths,
        **{f"data.{name}": value for name, value in settings.items()},
    }
    about = describe(make_config(None, changed)[1], "cross-entropy")
    scores = {"BLEU": bleu / 100, "chrF": 0.5, "exact": 0.25, "log_perplexity": -0.6}
    write_files(folder, {"model": model, **about, "parameters": 2_000_000}, scores)


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


def by_title(printed):
    """Rows of printed tables, by title."""
    title, found = None, {}
    for block in printed.strip().split("\n\n"):
        if block.startswith("|"):
            found[title], title = lines(block), None
        else:
            title = title or block.strip()  # notes follow
    return found


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
    assert ensembles["SCST, ensemble, self-critical"][PUBLISHED] == "117.5"
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


def test_scores_on_other_data_have_their_own_table(tmp_path):
    names = "flickr", "coco"
    here, there = ({"dataset": "prepared", "data_dir": f"prepared/{n}"} for n in names)
    data = {f"data.{name}": value for name, value in here.items()}
    about = describe(make_config(None, data)[1], "cross-entropy")
    write(tmp_path, {"model": "ngsan", **about, "trained_on": there}, 20.0)
    [run] = finished.find_runs([tmp_path]).values()
    assert run["dataset"] == (
        "prepared from prepared/flickr, trained on prepared from prepared/coco"
    )


OTHERS = {
    "precision": "bfloat16",
    "deterministic": True,
    "strategy": "mirrored",
    "data__data_dir": "coco",
    "data__max_words": 9,
    "training__learning_rate": 0.5,
    "decoding__no_repeat_ngram": 3,
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


# Numbers of rows, and sums of all scores, of the papers' own tables.
SUMS = {
    "aoanet_1": (24, 7525.9),
    "aoanet_2": (7, 6833.5),
    "aoanet_3": (0, 0),
    "aoanet_4": (10, 2542.1),
    "aoanet_human": (3, 100.0),
    "aoanet_video": (2, 267.24),
    "area_1": (12, 217.4),
    "area_2": (12, 336.0),
    "area_3": (12, -7.9297),
    "area_4": (4, 310.5),
    "ngsan_1": (8, 2488.9),
    "ngsan_2": (5, 1393.7),
    "ngsan_3": (4, 1118.7),
    "ngsan_4": (5, 1598.4),
    "ngsan_5": (5, 5044.1),
    "ngsan_6": (11, 3247.6),
    "ngsan_7": (3, 457.0),
    "ngsan_8": (4, 111.18),
    "ngsan_9": (10, 705.96),
    "ngsan_complexity": (4, 163.402),
    "spatial_1": (2, 395.5),
}


def test_published_tables_are_whole():
    papers = {x: table for x, table in rows.TABLES.items() if x not in EFFECTS}
    assert papers.keys() == SUMS.keys()
    for name, table in papers.items():
        total = sum(sum(row.scores.values()) for row in table.rows)
        assert (len(table.rows), round(total, 4)) == SUMS[name]
        models = {row.model for row in table.rows} - {None}
        assert models <= set(kc.models.presets())
        assert rows.notes_of(name)


@pytest.fixture
def translations(tmp_path):
    """Runs of several texts, whose lengths are the scale of each."""
    for seed, bleu in enumerate((30.0, 32.0)):
        write_translation(tmp_path / f"tiny_{seed}", "transformer_tiny", bleu)
    write_translation(tmp_path / "fr", "transformer_tiny", 40.0, target="fr")
    for model in ("transformer_tiny", "lstm_256_area"):
        write_translation(tmp_path / f"c_{model}", model, 20.0, "characters")
    write_run(tmp_path / "san", "san", 70.0)
    return tmp_path


def test_runs_of_translation_have_a_table_of_their_own(call_script, translations):
    done = call_script("experiments/tables.py", translations)
    assert done.returncode == 0, done.stderr
    found = by_title(done.stdout)
    assert set(found) == {"parallel from multi30k", "coco_objects"}
    rows = found["parallel from multi30k"]
    assert rows["transformer_tiny"] == {
        "": "transformer_tiny",
        "seeds": "2",
        "parameters": "2.00M",
        "BLEU": "31.0 ± 1.4",
        "chrF": "50.0 ± 0.0",
        "exact": "25.0 ± 0.0",
        "log_perplexity": "-0.6000 ± 0.0000",
    }
    assert {label: row["BLEU"] for label, row in rows.items()} == {
        "transformer_tiny": "31.0 ± 1.4",
        "transformer_tiny, data.target=fr": "40.0",
        "transformer_tiny, data.tokenizer=characters": "20.0",
        "lstm_256_area, data.tokenizer=characters": "20.0",
    }


def test_papers_tables_of_translation(call_script, translations, tmp_path):
    path = tmp_path / "tables.csv"
    done = call_script(
        *("experiments/tables.py", "--table=area_1,area_2,area_3,ngsan_8,ngsan_2"),
        *(f"--csv={path}", translations),
    )
    assert done.returncode == 0, done.stderr
    found = by_title(done.stdout)
    characters, subwords, perplexities, norms = (
        found[f"{table}: parallel from multi30k"]
        for table in (
            "Area Attention, Table 1, characters",
            "Area Attention, Table 2, subwords",
            "Area Attention, Table 3, characters",
            "NG-SAN, Table 8",
        )
    )
    tiny = "Tiny, regular, En-{} (transformer_tiny)".format
    assert [row["BLEU"] for row in characters.values()] == ["20.0", *[""] * 11]
    assert characters[tiny("De")]["paper's BLEU"] == "6.97"
    assert subwords[tiny("De")]["BLEU"] == "31.0 ± 1.4"
    assert subwords[tiny("Fr")]["BLEU"] == "40.0"
    assert subwords[tiny("Fr")]["paper's BLEU"] == "27.07"
    assert subwords[tiny("De")]["paper's BLEU"] == "18.60"  # as printed
    area = perplexities["256 cells, area, En-De (lstm_256_area)"]
    assert area["log_perplexity"] == "-0.6000"
    assert area["paper's log_perplexity"] == "-0.7981"
    nsa = norms["+ NSA (transformer_base_nsa)"]
    assert nsa["paper's BLEU"] == "27.92"
    assert "BLEU" not in nsa  # none of the runs is one of its models
    assert len(found) == 5  # captions have no row in these, nor these in theirs
    with open(path, newline="") as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert float(rows[tiny("Fr")]["BLEU"]) == pytest.approx(40)
    assert rows["SAN (san)"]["BLEU"] == ""
    assert float(rows["SAN (san)"]["CIDEr-D"]) == pytest.approx(70)


def test_cells_of_translation_name_their_text(call_script, monkeypatch, tmp_path):
    commands = []

    def succeed(command, check):
        commands.append([str(part) for part in command[2:]])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", succeed)
    call_script(
        *("experiments/tables.py", "--table=area_1", "--run", "--seeds=0"),
        *(f"--output_dir={tmp_path}", "--", "--dataset=parallel"),
    )
    assert len(commands) == 12
    assert commands[3] == [
        "--resume",
        "--model=transformer_tiny_area",
        "--seed=0",
        "--config.data.tokenizer=characters",
        "--config.data.source=en",
        "--config.data.target=fr",
        f"--output_dir={tmp_path / 'transformer_tiny_area_characters_en_fr_0'}",
        "--dataset=parallel",
    ]


def test_cells_have_the_values_of_their_papers(call_script, monkeypatch, tmp_path):
    commands = []

    def succeed(command, check):
        commands.append({str(part) for part in command[2:]})
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", succeed)
    for table, *config in (
        ("aoanet_4", "--", "--config", "aoanet_coco"),
        ("aoanet_4", "--", "--dataset=coco_objects"),
        ("area_3", "--", "--config=configs/wmt14_area_lstm.py"),
        ("effects_areas", "--cells=post plain,pre mean", "--", "--dataset=parallel"),
    ):
        call_script(
            *("experiments/tables.py", f"--table={table}", "--run", "--seeds=0"),
            *(f"--output_dir={tmp_path}", *config),
        )
    ablations, others, lstms = commands[:10], commands[10:20], commands[20:32]
    plain, means = commands[32:]
    assert {"--model=transformer_tiny", "--config.model.norm_position=post"} < plain
    assert {"--model=transformer_tiny_area", "--config.model.area_values=mean"} < means
    assert all("--config.self_critical.epochs=0" in x for x in ablations + others)
    base, refined = ablations[0], ablations[1]
    released = {"--config.training.epochs=35", "--config.model.context_dropout=0.0"}
    assert "--model=aoanet_base" in base
    assert released < base
    assert not released & refined
    assert not any(released & x for x in others)
    assert "--config.model.dropout=0.1" in lstms[1]  # to French
    assert "--config.model.dropout=0.1" not in lstms[0]


def test_a_translator_is_not_scored_on_other_data(call_script, translations):
    run = translations / "fr"
    done = call_script("experiments/evaluate.py", run, "--data_dir=elsewhere")
    assert done.returncode == 1
    assert f"error: {run} holds no captioner" in done.stderr


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
    whole = (tmp_path / "san_0" / "config.json").read_text()
    (tmp_path / "mixed" / "config.json").write_text(whole.replace('"san"', '"sam"'))
    done = call_script("experiments/tables.py", tmp_path, "nowhere")
    assert lines(done.stdout)["san"]["CIDEr-D"] == "72.0 ± 2.8"
    assert "san_1 is skipped: " in done.stderr
    assert "deep/config.json: objective: Field required" in done.stderr
    assert "mixed is skipped: There is no model named 'sam'." in done.stderr
    assert "There is no run in nowhere." in done.stderr
    assert call_script("experiments/tables.py", "nowhere").returncode == 1


def test_a_table_that_cannot_be_written_is_named(call_script, runs):
    done = call_script("experiments/tables.py", "--csv=README.md/a.csv", *runs)
    assert done.returncode == 1
    assert "README.md/a.csv cannot be written" in done.stderr


def test_there_is_no_such_table(call_script, runs):
    done = call_script("experiments/tables.py", "--table=ngsan_10", *runs)
    assert done.returncode == 1
    assert "error: there is no table 'ngsan_10': those are aoanet_1," in done.stderr
    done = call_script("experiments/tables.py", "--table=ngsan_5", "--run")
    assert "NG-SAN, Table 5, single models has no models to train" in done.stderr
    done = call_script(
        "experiments/tables.py", "--table=effects_boxes", "--run", "--cells=NSA"
    )
    assert "no row of effects_boxes has NSA in its label: those are SAN," in done.stderr


def test_published_tables_need_no_run(call_script):
    names = [*(x for x in SUMS if x != "aoanet_3"), "aoanet_3"]  # which has no rows
    done = call_script("experiments/tables.py", f"--table={','.join(names)}")
    assert done.returncode == 0, done.stderr
    found = by_title(done.stdout)
    assert len(found) == len(SUMS) - 1
    server = found["NG-SAN, Table 5, single models"]["NG-SAN"]
    assert list(server)[1:3] == ["paper's BLEU-1 c5", "paper's BLEU-1 c40"]
    assert server["paper's CIDEr-D c40"] == "128.6"
    base = found["AoANet, Table 4"]["Base (aoanet_base)"]
    assert [*base.values()] == ["Base (aoanet_base)", "75.7", "34.9", "56.0", "109.5"]
    assert "of newstest2014, trained on WMT14; there is no run of ours" in done.stdout
    assert "captions of four images, and has no numbers" in done.stdout


def write_items(folder, cider, likelihoods):
    items = {"ids": [*range(len(cider))], "CIDEr-D": cider}
    likelihoods = [[x - 0.1, x + 0.1] for x in likelihoods]
    (folder / "test_items.json").write_text(
        json.dumps({**items, "log_probability": likelihoods})
    )


def test_rows_are_compared_over_items_and_seeds(call_script, tmp_path):
    rng = np.random.default_rng(0)
    image = rng.normal(1.0, 1.0, 100)  # some images are easier, for all
    for name, better in (("san", 0), ("nsan", 0), ("nsan_key", 1)):
        for seed in range(3):
            folder = tmp_path / f"{name}_{seed}"
            write_run(folder, name, 100.0, seed=seed)
            noise = rng.normal(0, 0.1, 100)
            cider = image + noise + 0.4 * better + 0.05 * (seed - 1)
            write_items(folder, [*cider], [*(image / 10 + noise - 2 - better / 2)])
    done = call_script("experiments/tables.py", "--table=ngsan_3", tmp_path)
    assert done.returncode == 0, done.stderr
    _, table = done.stdout.split(
        "Differences from neither (san), paired, with 95 % intervals\n\n"
    )
    cells = [[x.strip() for x in line.split("|")[1:-1]] for line in table.splitlines()]
    rows = {tuple(row[:2]): row[2:] for row in cells[2:]}
    assert len(rows) == 4
    mean, _, verdict, over = rows["key (nsan_key)", "CIDEr-D"]
    assert abs(float(mean) - 40) < 3
    assert (verdict, over) == ("higher", "100 items and seeds")
    assert rows["query (nsan)", "CIDEr-D"][2] == "cannot be told apart"
    mean, interval, verdict, _ = rows["key (nsan_key)", "log_probability"]
    assert abs(float(mean) + 0.5) < 0.05
    low, high = map(float, interval.split(" to "))
    assert low < float(mean) < high < 0
    assert verdict == "lower"
    done = call_script("experiments/tables.py", "--against=key (nsan_key", tmp_path)
    assert "Differences from" not in done.stdout  # no row has that label here
    done = call_script("experiments/tables.py", "--against=nsan_key", tmp_path)
    assert "Differences from nsan_key, paired" in done.stdout


def test_a_score_that_means_nothing_is_not_shown(call_script, tmp_path):
    write_run(tmp_path / "san", "san", 50.0)
    path = tmp_path / "san" / "test_scores.json"
    notes = {"CIDEr-D": "means nothing: it is 0."}
    path.write_text(json.dumps({**json.loads(path.read_text()), "notes": notes}))
    done = call_script("experiments/tables.py", tmp_path)
    assert lines(done.stdout)["san"]["CIDEr-D"] == "n/a"
    assert "CIDEr-D: means nothing: it is 0." in done.stdout


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
