r"""Rebuilds the tables in docs/results and README from what was trained.

    python experiments/results.py

writes the CSV files of planned trainings (experiments/papers/plan.py) from their
archives in docs/results/runs, then those of the papers' claims (experiments/claims.py)
and a figure of them, and replaces the text between `<!-- table FILE.csv -->` and
`<!-- end of table -->` in the pages. A marker may name the columns to show, as
`<!-- table FILE.csv: row, CIDEr-D -->`; a link to the file with all columns then
follows the table. README has `<!-- table of captioners -->`.

A file with the column `initialization` says with which version of the start of the
weights each row was trained. Rows of another version than the code's have a dagger.
Rows that no archive has stay as they are.
"""

import csv
import re
import statistics

from experiments import claims
from experiments.papers import forest
from experiments.papers.archives import FOLDER as RUNS
from experiments.papers.archives import (
    archived_runs,
    is_archived,
    minutes_of,
    path_of,
)
from experiments.papers.plan import PLAN
from experiments.papers.rows import rows_of
from experiments.papers.sections import cell, scores_in_text, text_of, write_lines
from keras_caption.base.atomic import replacing
from keras_caption.commands.command_line import Parser, start
from keras_caption.evaluation import markdown_table
from keras_caption.formats.runs import read_history
from keras_caption.models.initializers import INITIALIZATION_VERSION
from keras_caption.tasks import of_run

FOLDER = RUNS.parent
README = FOLDER.parents[1] / "README.md"
TABLE = re.compile(
    r"(<!-- table (?P<file>[\w.]+)(?:: (?P<columns>.*?))? -->\n)"
    r".*?(?=<!-- end of table -->)",
    re.DOTALL,
)
OF_README = re.compile(
    r"(<!-- table of captioners -->\n).*?(?=<!-- end of table -->)", re.DOTALL
)
VERSION, COMMIT = "initialization", "commit"  # columns that pages do not show
DAGGER = "†"
OLDER = (
    f"{DAGGER} Trained by earlier code, which began most models with other weights.\n"
    "Today's gives other numbers ([what is trained]({page}#what-is-trained))."
)
# Epochs of which the drift of queries is shown.
DRIFT_EPOCHS = 1, 2, 3, 5, 10, 20
# README's table: the presets in its columns, and its rows.
CAPTIONERS = {
    "SAN": "san",
    "N-SAN": "nsan",
    "G-SAN": "gsan",
    "NG-SAN": "ngsan",
    "AoANet": "aoanet",
    "`ngsan_aoa`": "ngsan_aoa",
}
OF_DATA = (
    ("COCO's annotated objects", "coco_objects", ""),
    ("and 5 epochs of SCST", "coco_objects", " + SCST"),
    ("built-in scenes", "scenes", ""),
    ("and 3 epochs of SCST", "scenes", " + SCST"),
)


def main(arguments):
    Parser("experiments/results.py", __doc__).parse_args(arguments)
    rebuild()


def rebuild():
    """Rebuilds all tables, see above."""
    tables = {x.csv: x for x in PLAN}.values()
    for training in tables:
        write_planned(training)
    with replacing(FOLDER / "plan.csv") as path:
        write_lines(path, [*map(planned, PLAN)])
    if lines := [line for training in tables for line in drifts(training)]:
        with replacing(FOLDER / "effects_drift.csv") as path:
            write_lines(path, lines)
    claims.archived_rows.cache_clear()
    effects = claims.tables()
    for name, lines in effects.items():
        with replacing(FOLDER / f"{name}.csv") as path:
            write_lines(path, lines, () if lines else claims.HEADS)
    with replacing(FOLDER / "effects.svg") as path:
        forest.save([*map(marked, effects["effects"])], path)
    for path in sorted(FOLDER.glob("*.md")):
        path.write_text(with_tables(path.read_text()))
    README.write_text(with_captioners(README.read_text()))


# === From archives to CSV files ===


def planned(training):
    """The line of `plan.csv` for a planned training."""
    done = [cell for cell in training.rows if is_archived(training, cell)]
    minutes = [minutes_of(path_of(training, cell)) for cell in done]
    mean = statistics.mean(minutes) if minutes else training.minutes
    return {
        "table": ": ".join([training.csv, *[", ".join(training.cells)][:1]]).rstrip(
            ": "
        ),
        "cells": str(len(training.rows)),
        "done": str(len(done)),
        "seeds": str(training.seeds),
        "SCST epochs": str(training.scst_epochs or ""),
        "minutes a cell": "" if mean is None else f"{mean:.0f}",
    }


def write_planned(training):
    """Writes the CSV file of a planned table, if there are archives of it."""
    with archived_runs(training) as runs:
        lines = lines_of(training.table, runs)
    if not any(line.get(VERSION) for line in lines):
        return
    path = FOLDER / f"{training.csv}.csv"
    earlier = {line["row"]: line for line in read_lines(path)} if path.exists() else {}
    for line in lines:
        if not line.get(VERSION):
            line |= earlier.get(line["row"], {})
    kept = [line for line in lines if len(line) > 1]
    with replacing(path) as partial:
        write_lines(partial, kept)


def drifts(training):
    """The lines of `effects_drift.csv` for the archives of a planned training.

    A cell is the mean and the deviation, over seeds, of the drift in an epoch.
    """
    if not training.with_drift:
        return
    with archived_runs(training) as runs:
        for row in rows_of(training.table, runs):
            histories = [read_history(run["folder"], "val_cider") for run in row.runs]
            if not histories or any("drift" not in x[0] for x in histories):
                continue
            line = {
                "row": f"{training.setup}, {row.label}",
                "seeds": str(len(row.runs)),
            }
            for epoch in DRIFT_EPOCHS:
                moved = [x[epoch - 1]["drift"] for x in histories if len(x) >= epoch]
                line[f"epoch {epoch}"] = text_of(moved, 2) if moved else ""
            yield line


def lines_of(table, runs):
    """The lines of the CSV file of a table, dicts from column to str.

    Lines of rows without runs have the paper's scores alone.
    """
    lines = []
    for row in rows_of(table, runs):
        line = {"row": row.label}
        if row.runs:
            metrics = dict.fromkeys([*of_run(row.runs[0]).metrics, "log_probability"])
            line |= {name: cell(row, name) for name in ("seeds", "parameters")}
            line |= dict.fromkeys(metrics, "") | scores_in_text(row, metrics)
            line |= {
                name: ", ".join(sorted({str(run[key]) for run in row.runs}))
                for name, key in ((VERSION, "initialization_version"), (COMMIT, COMMIT))
            }
        line |= {f"paper's {name}": x for name, x in row.published.items()}
        lines.append(line)
    return lines


def read_lines(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


# === From CSV files to pages ===


def with_tables(text):
    """The text of a page, with tables made from their CSV files."""
    return TABLE.sub(lambda match: match[1] + table_of(match), text)


def table_of(match):
    """The table after a marker, without empty rows.

    Raises:
        ValueError: If the CSV file has no such column.
    """
    path = FOLDER / match["file"]
    if not path.exists():  # of a planned table that has no cell yet
        return ""
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    shown = [i for i, name in enumerate(header) if name not in (VERSION, COMMIT)]
    if match["columns"]:  # a table of all columns may repeat a name
        shown = [header.index(name) for name in match["columns"].split(", ")]
    lines, has_older = [], False
    for row in rows:
        cells = [row[i] for i in shown]
        if not any(cells[1:]):
            continue
        if VERSION in header and is_older(row[header.index(VERSION)]):
            cells[0] += f" {DAGGER}"
            has_older = True
        lines.append(cells)
    names = ["" if header[i] == "row" else header[i] for i in shown]
    table = markdown_table(names, lines)
    if has_older:
        table += "\n\n" + OLDER.format(page="README.md")
    if match["columns"]:
        table += f"\n\n[All columns]({match['file']})"
    return f"\n{table}\n\n"


def marked(line):
    """A line of `effects.csv`, with a dagger if it is of an older start."""
    if is_older(line[VERSION]):
        line = line | {"claim": f"{line['claim']} {DAGGER}"}
    return line


def is_older(version):
    """Whether a cell says that a row was trained with an older start."""
    return bool(version) and version != str(INITIALIZATION_VERSION)


def with_captioners(text):
    """README, with the table of captioners made from CSV files."""
    return OF_README.sub(lambda match: f"{match[1]}\n{captioners()}\n\n", text)


def captioners():
    """README's table of scores."""
    lines, has_older = [], False
    for label, file, suffix in OF_DATA:
        rows = {line["row"]: line for line in read_lines(FOLDER / f"{file}.csv")}
        cells = []
        for model in CAPTIONERS.values():
            row = rows[f"{model}{suffix}"]
            older = is_older(row[VERSION])
            has_older |= older
            cells.append(f"{row['CIDEr-D']} {DAGGER}" if older else row["CIDEr-D"])
        lines.append([label, *cells])
    table = markdown_table(["", *CAPTIONERS], lines)
    if has_older:
        table += "\n\n" + OLDER.format(page="docs/results/README.md")
    return table


if __name__ == "__main__":
    start(main)
