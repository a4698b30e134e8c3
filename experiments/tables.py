r"""Prints the scores of finished runs as tables, the papers' own among them.

    python experiments/tables.py saved_models
    python experiments/tables.py --table ngsan_2,ngsan_4 saved_models

takes all finished runs in these folders or below. Runs that differ in their seed only
make one row, of means and standard deviations; `seeds` says how many there are. A
paper's table has the paper's rows, and all its scores beside ours; runs that belong to
none of its rows are reported.

    python experiments/tables.py --table ngsan_2 --run -- --dataset coco_objects \
        --data_dir annotations

trains what the table needs, three seeds of each cell, and resumes if it was
interrupted. What follows `--` is for experiments/run.py.
"""

import collections
import csv
import os
import pathlib
import statistics
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras_caption as kc
from experiments.finished import distinctions, find_runs, label_of
from experiments.papers import Row, cells_of, ensembles_of, notes_of, rows_of
from experiments.published import SELF_CRITICAL, TABLES
from keras_caption.commands.command_line import Parser, names, start


def main(arguments):
    # What follows `--` is for run.py.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parse(arguments[:end])
    folders = list(options.folders)
    if options.run:
        for table in options.table:
            folders += train(table, options, arguments[end + 1 :])
    datasets = collections.defaultdict(list)
    for run in find_runs(folders).values():
        datasets[run["dataset"]].append(run)
    printed = []
    for dataset, runs in datasets.items():
        if options.table:
            for table in options.table:
                title = f"{TABLES[table].title}: {dataset}"
                printed.append((title, rows_of(table, runs), notes_of(table)))
        else:
            printed.append((dataset, rows_of_runs(runs), ""))
    for title, rows, notes in printed:
        show(title, rows, notes)
    report_skipped(datasets.values(), printed)
    if options.csv:
        write_csv(options.csv, printed)


def parse(arguments):
    parser = Parser("experiments/tables.py", __doc__)
    parser.add_argument("folders", nargs="*", help="folders of runs")
    parser.add_argument(
        "--table",
        type=names,
        default=[],
        help=f"of the papers', separated by commas: {', '.join(TABLES)}",
    )
    parser.add_argument("--csv", help="file that the tables are written to as well")
    parser.add_argument(
        "--run", action="store_true", help="train what is missing of --table"
    )
    parser.add_argument(
        "--seeds",
        type=names,
        default=[],
        help="with --run: of each cell's runs; three if omitted, or as many as the "
        "table's ensembles have members",
    )
    parser.add_argument(
        "--output_dir",
        default="saved_models/tables",
        help="with --run: folder of the runs",
    )
    options = parser.parse_intermixed_args(arguments)
    for table in options.table:
        if table not in TABLES:
            parser.error(f"there is no table {table!r}: those are {', '.join(TABLES)}")
    if options.run and not options.table:
        parser.error("--run needs --table")
    return options


def report_skipped(datasets, printed):
    """Reports the runs that belong to no row."""
    shown = {
        run["folder"] for _, rows, _ in printed for row in rows for run in row.runs
    }
    skipped = [str(r["folder"]) for runs in datasets for r in runs]
    skipped = [folder for folder in skipped if pathlib.Path(folder) not in shown]
    if skipped:
        print(
            f"\n{len(skipped)} runs belong to no row of these tables, as their models "
            f"or settings are others: {', '.join(skipped)}",
            file=sys.stderr,
        )


def rows_of_runs(runs):
    """A row for all that differ in their seed only."""
    groups = collections.defaultdict(list)
    for run, changed in distinctions(runs):
        groups[label_of(run, changed)].append(run)
    return [
        Row(label, of_row, objective=of_row[0]["objective"])
        for label, of_row in groups.items()
    ]


def train(table, options, arguments):
    """Makes the runs of a table; returns their folders."""
    cells, ensembles = cells_of(table), ensembles_of(table)
    most = max((row.members for row in ensembles), default=0)
    seeds = options.seeds or [str(seed) for seed in range(max(3, most))]
    folders = []
    for seed in seeds:
        for name, overrides in cells:
            folder = folder_of(options.output_dir, name, overrides, seed)
            folders.append(folder)
            print(
                f"\n{table}: {len(folders)} of {len(cells) * len(seeds)}, {folder}",
                flush=True,
            )
            command = [
                *(f"--model={name}", f"--seed={seed}"),
                *(f"--config.{key}={value}" for key, value in overrides.items()),
                f"--output_dir={folder}",
                *arguments,
            ]
            call(command, folder)
    return folders + [
        folder
        for row in ensembles
        if (folder := make_ensemble(row, seeds[: row.members], options, arguments))
    ]


def folder_of(output_dir, name, overrides, seed):
    values = "".join(f"_{value}" for value in overrides.values())
    return pathlib.Path(output_dir) / f"{name}{values}_{seed}"


def make_ensemble(row, seeds, options, arguments):
    """Scores the ensemble of a row; returns its folder, or `None` without members."""
    part = "scst" if row.objective == SELF_CRITICAL else "."
    top = options.output_dir
    members = [folder_of(top, row.model, row.overrides, seed) / part for seed in seeds]
    if len(members) < row.members or not all(f.exists() for f in members):
        print(f"\n{row.label}, {row.objective}: skipped, its members are not trained")
        return None
    folder = pathlib.Path(top) / f"{row.model}_ensemble" / part
    print(f"\n{row.label}: {folder}", flush=True)
    ensemble = f"--ensemble={','.join(map(str, members))}"
    call([ensemble, f"--output_dir={folder}", *arguments], folder)
    return folder


def call(command, folder):
    script = pathlib.Path(__file__).with_name("run.py")
    done = subprocess.run([sys.executable, script, "--resume", *command], check=False)
    if done.returncode:
        sys.exit(f"error: the run of {folder} failed. The same command resumes it.")


def show(title, rows, notes):
    """Prints rows as Markdown."""
    published = published_of(rows)
    print(f"\n{title}\n")
    if notes:
        print(f"{notes}\n")
    columns = ["seeds", "parameters", *kc.evaluation.METRICS]
    if not any(run["parameters"] for row in rows for run in row.runs):
        columns.remove("parameters")
    print_table(
        columns + [f"paper's {name}" for name in published],
        {
            row.label: [cell(row, name) for name in columns]
            + [str(row.published.get(name, "")) for name in published]
            for row in rows
        },
    )
    with_statements = [
        Row(row.label, [run["statements"] for run in row.runs])
        for row in rows
        if row.runs and row.runs[0]["statements"]
    ]
    if with_statements:
        print("\nShare of statements that are true\n")
        columns = [*kc.data.scenes.CATEGORIES, "all"]
        print_table(
            columns,
            {
                row.label: [cell(row, name) for name in columns]
                for row in with_statements
            },
        )


def print_table(columns, rows):
    print("| | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for label, cells in rows.items():
        print(f"| {label} | " + " | ".join(cells) + " |")


def published_of(rows):
    """Names of the values that the papers report of any of the rows."""
    names = ["parameters", *kc.evaluation.METRICS]
    return [name for name in names if any(name in row.published for row in rows)]


def cell(row, name):
    """Text of a cell: mean and standard deviation over runs."""
    if not row.runs:
        return ""
    if name == "seeds":
        return str(len(row.runs))
    if name == "parameters":
        count = row.runs[0]["parameters"]
        return f"{count / 1e6:.2f}M" if count else ""
    mean, spread = mean_and_spread(row, name)
    if mean is None:
        return "n/a"
    return f"{mean:.1f}" if spread is None else f"{mean:.1f} ± {spread:.1f}"


def mean_and_spread(row, name):
    """Mean and standard deviation of a score times 100, `None` where not known."""
    values = [run.get(name) for run in row.runs]
    if not values or None in values:
        return None, None
    spread = 100 * statistics.stdev(values) if len(values) > 1 else None
    return 100 * statistics.mean(values), spread


def write_csv(path, tables):
    """All tables in one file: a line for each row."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        heads = ["table", "row", "objective", "seeds"]
        heads += ["parameters", "published parameters"]
        for name in kc.evaluation.METRICS:
            heads += [name, f"{name} deviation", f"published {name}"]
        writer.writerow(heads)
        for title, rows, _ in tables:
            for row in rows:
                count = row.runs[0]["parameters"] if row.runs else None
                line = [title, row.label, row.objective, len(row.runs)]
                line += [count, row.published.get("parameters")]
                for name in kc.evaluation.METRICS:
                    line += [*mean_and_spread(row, name), row.published.get(name)]
                writer.writerow(line)


if __name__ == "__main__":
    start(main)
