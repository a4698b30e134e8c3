"""Prints the scores of finished runs as Markdown, mean and spread over seeds.

    python experiments/tables.py saved_models/*

Takes folders that experiments/run.py wrote, `scst` folders inside them too; runs of
one model on one dataset that differ in their seed make one row.
"""

import collections
import json
import pathlib
import statistics
import sys

from absl import app

import keras_caption as kc


def main(argv):
    groups = collections.defaultdict(lambda: collections.defaultdict(list))
    for folder in map(pathlib.Path, argv[1:]):
        try:
            of_run = json.loads((folder / "config.json").read_text())
            scores = json.loads((folder / "test_scores.json").read_text())
        except FileNotFoundError as error:
            sys.exit(
                f"error: {folder} is not a finished run: there is no {error.filename}."
            )
        name = of_run["model"]
        if of_run["objective"] == "self-critical":
            name += " + SCST"
        groups[of_run["dataset"]][name].append(scores)
    for dataset, models in groups.items():
        counts = sorted({len(runs) for runs in models.values()})
        print(f"\n{dataset}, {' or '.join(map(str, counts))} seeds\n")
        print_table(models, kc.evaluation.METRICS)
        if dataset == "scenes":
            print("\nShare of statements that are true\n")
            statements = {
                name: [run["statements"] for run in runs]
                for name, runs in models.items()
            }
            print_table(statements, [*kc.data.scenes.CATEGORIES, "all"])


def print_table(models, columns):
    """A row for each model, of means and standard deviations over its runs."""
    print("| | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for model, runs in models.items():
        cells = [mean_and_spread([run.get(name) for run in runs]) for name in columns]
        print(f"| {model} | " + " | ".join(cells) + " |")


def mean_and_spread(values):
    if None in values:
        return "n/a"
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):.1f} ± {100 * spread:.1f}"


if __name__ == "__main__":
    app.run(main)
