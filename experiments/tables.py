r"""Prints the scores of finished runs as tables, such as those of the papers.

    python experiments/tables.py saved_models
    python experiments/tables.py --table ngsan_2,ngsan_4 saved_models
    python experiments/tables.py --table ngsan_5

reads all finished runs in these folders or below. Runs that differ in their seed only
share a row of means and standard deviations; `seeds` is their number. The table of a
paper has the paper's rows, and the paper's scores beside ours. It can be printed
without any run of ours. Runs that belong to no row are reported. Runs on other data, or
of another task, have separate tables, with the metrics of their task.

Below a table, each row is compared with the first row, by paired differences over the
items that both were scored on. `--against` names another row by a text in its label.

    python experiments/tables.py --table ngsan_2 --run -- --dataset coco_objects \
        --data_dir annotations

trains the runs that a table lacks, three seeds of each cell, and resumes after an
interruption. Arguments behind `--` are passed to experiments/run.py. If they name the
experiment of the paper, such as `--config wmt14_area_lstm`, each cell has its values in
the paper or in the authors' released code.

    python experiments/tables.py --run --all --data DATA --budget 60

trains all that docs/results shows and that is not trained yet, the most wanted first
(experiments/papers/plan.py), for 60 hours, and rebuilds the documents' tables after
each cell. The same command resumes after an interruption.
"""

import collections
import os
import pathlib
import subprocess
import sys

from keras_caption.papers import SELF_CRITICAL

from experiments.papers.finished import distinctions, find_runs, label_of
from experiments.papers.rows import (
    TABLES,
    Row,
    cells_of,
    ensembles_of,
    name_of_cell,
    notes_of,
    rows_of,
    task_of_table,
)
from experiments.papers.runner import run_all
from experiments.papers.sections import (
    Section,
    show,
    write_csv,
    write_differences,
)
from keras_caption.base.errors import need_packages
from keras_caption.commands.command_line import Parser, names, new_file, start
from keras_caption.tasks import of_run


def main(arguments):
    # Arguments behind `--` are passed to run.py.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parse(arguments[:end])
    folders = list(options.folders)
    if options.all:
        run_all(options.output_dir, options.data, options.budget)
        return
    if options.run:
        for table in options.table:
            folders += train(table, options, arguments[end + 1 :])
    datasets = collections.defaultdict(list)
    for run in find_runs(folders, needed=not options.table).values():
        datasets[run["dataset"]].append(run)
    sections = [*sections_of(datasets, options.table)]
    for section in sections:
        show(section, options.against)
    report_skipped(datasets.values(), sections)
    if options.csv:
        write_csv(options.csv, sections)
    if options.differences:
        write_differences(options.differences, sections, options.against)


def sections_of(datasets, tables):
    """Yields tables of runs: those of the papers, or one for each dataset."""
    if not tables:
        for dataset, runs in datasets.items():
            metrics = of_run(runs[0]).metrics
            yield Section(dataset, metrics, rows_of_runs(runs), dataset=dataset)
    for table in tables:
        task, title = task_of_table(table), TABLES[table].title
        ours = {name: x for name, x in datasets.items() if of_run(x[0]) is task}
        for dataset, runs in ours.items():
            rows = rows_of(table, runs)
            has_runs = any(row.runs for row in rows)
            notes = notes_of(table, dataset if has_runs else None)
            yield Section(f"{title}: {dataset}", task.metrics, rows, notes, dataset)
        if not ours:
            metrics = task.metrics if task else ()
            yield Section(title, metrics, rows_of(table, []), notes_of(table))


def parse(arguments):
    parser = Parser("experiments/tables.py", __doc__, imports=True)
    parser.add_argument("folders", nargs="*", help="folders of runs")
    parser.add_argument(
        "--table",
        type=names,
        default=[],
        help=f"tables of the papers, separated by commas: {', '.join(TABLES)}",
    )
    parser.add_argument(
        "--against",
        type=names,
        default=[],
        help="text in the label of the row that others are compared with; of several "
        "such rows, separated by commas, the last one above counts",
    )
    parser.add_argument("--csv", type=new_file, help="new file for the tables")
    parser.add_argument(
        "--differences",
        type=new_file,
        help="new file for the differences",
    )
    parser.add_argument(
        "--run", action="store_true", help="train the runs that --table lacks"
    )
    parser.add_argument(
        "--all", action="store_true", help="with --run: all planned tables"
    )
    parser.add_argument(
        "--budget", type=float, help="with --all: hours after which to stop"
    )
    parser.add_argument(
        "--data",
        default=os.environ.get("KERAS_CAPTION_DATA", "."),
        help="with --all: folder of coco_val2017, coco_questions and multi30k; "
        "defaults to that of the environment variable KERAS_CAPTION_DATA",
    )
    parser.add_argument(
        "--at_once",
        action="store_true",
        help="with --run: all seeds of a cell together, on JAX, see "
        "experiments/seeds.py",
    )
    parser.add_argument(
        "--seeds",
        type=names,
        default=[],
        help="with --run: seeds of each cell; defaults to three, or to the number of "
        "members of the table's ensembles",
    )
    parser.add_argument(
        "--cells",
        type=names,
        default=[""],
        help="with --run: texts in the labels of the rows to train; defaults to all",
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
        if options.run and task_of_table(table) is None:
            parser.error(f"--run: {TABLES[table].title} has no models to train")
        labels = [row.label for row in cells_of(table)]
        if options.run and not any(x in y for x in options.cells for y in labels):
            parser.error(
                f"--cells: no row of {table} has {', '.join(options.cells)} in its "
                f"label: those are {', '.join(labels)}"
            )
    if options.run and not (options.table or options.all):
        parser.error("--run needs --table or --all")
    if options.all or options.at_once:
        need_packages("jax")
    if options.all and (options.table or not options.run):
        parser.error("--all needs --run, and no --table")
    return options


def report_skipped(datasets, sections):
    """Reports the runs that belong to no row."""
    rows = [row for section in sections for row in section.rows]
    shown = {run["folder"] for row in rows for run in row.runs}
    skipped = [str(r["folder"]) for runs in datasets for r in runs]
    skipped = [folder for folder in skipped if pathlib.Path(folder) not in shown]
    if skipped:
        print(
            f"\n{len(skipped)} runs belong to no row of these tables, since their "
            f"models or settings differ: {', '.join(skipped)}",
            file=sys.stderr,
        )


def rows_of_runs(runs):
    """One row for all runs that differ in their seed only."""
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
    cells = [row for row in cells if any(text in row.label for text in options.cells)]
    most = max((row.members for row in ensembles), default=0)
    seeds = options.seeds or [str(seed) for seed in range(max(3, most))]
    # The recipes of single rows belong to the experiment of the paper, at its scale.
    experiment = TABLES[table].config
    is_papers = experiment in {pathlib.Path(x.split("=")[-1]).stem for x in arguments}
    runs = [(row, [seed]) for seed in seeds for row in cells]
    if options.at_once:
        runs = [(row, seeds) for row in cells]
    folders = []
    for number, (row, run_seeds) in enumerate(runs):
        folder = pathlib.Path(options.output_dir, name_of_cell(row))
        seed_folders = [pathlib.Path(f"{folder}_{seed}") for seed in run_seeds]
        folders += seed_folders
        print(f"\n{table}: {number + 1} of {len(runs)}, {seed_folders[0]}", flush=True)
        settings = {**row.overrides, **TABLES[table].settings}
        if is_papers:
            settings |= row.recipe
        flags = [f"--config.{key}={value}" for key, value in settings.items()]
        if options.at_once:
            together = [f"--seeds={','.join(run_seeds)}", f"--output_dir={folder}"]
            call(
                "seeds.py",
                [f"--model={row.model}", *flags, *together, *arguments],
                folder,
            )
        else:
            command = [f"--model={row.model}", f"--seed={run_seeds[0]}", *flags]
            command.append(f"--output_dir={seed_folders[0]}")
            call("run.py", ["--resume", *command, *arguments], seed_folders[0])
    return folders + [
        folder
        for row in ensembles
        if (folder := make_ensemble(row, seeds[: row.members], options, arguments))
    ]


def make_ensemble(row, seeds, options, arguments):
    """Scores the ensemble of a row; returns its folder, or `None` without members."""
    part = "scst" if row.objective == SELF_CRITICAL else "."
    top = options.output_dir
    cell = pathlib.Path(top, name_of_cell(row))
    members = [pathlib.Path(f"{cell}_{seed}") / part for seed in seeds]
    if len(members) < row.members or not all(f.exists() for f in members):
        print(f"\n{row.label}, {row.objective}: skipped, its members are not trained")
        return None
    folder = pathlib.Path(top) / f"{row.model}_ensemble" / part
    print(f"\n{row.label}: {folder}", flush=True)
    ensemble = f"--ensemble={','.join(map(str, members))}"
    call("run.py", ["--resume", ensemble, f"--output_dir={folder}", *arguments], folder)
    return folder


def call(name, command, folder):
    script = pathlib.Path(__file__).with_name(name)
    done = subprocess.run([sys.executable, script, *command], check=False)
    if done.returncode:
        sys.exit(f"error: the run of {folder} failed. The same command resumes it.")


if __name__ == "__main__":
    start(main)
