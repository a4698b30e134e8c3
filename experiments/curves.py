r"""Draws the validation scores of finished runs, epoch by epoch.

    python experiments/curves.py saved_models --figure curves.png

Takes all finished runs in these folders or below: CIDEr-D of captioners, BLEU of
translators. A line is the mean of runs that differ in their seed only, the band around
it what they span; cross-entropy comes first, self-critical training after the dotted
line. One panel for each dataset.
"""

import collections

import numpy as np
from matplotlib.figure import Figure

from experiments.papers.finished import distinctions, find_runs, label_of, task_of
from keras_caption.atomic import creating
from keras_caption.commands.command_line import Parser, new_figure, start
from keras_caption.formats.runs import read_history

SCORES = {"val_cider": "CIDEr-D", "val_bleu": "BLEU", "val_accuracy": "accuracy"}


def main(arguments):
    parser = Parser("experiments/curves.py", __doc__, imports=True)
    parser.add_argument("folders", nargs="*", help="folders of runs")
    parser.add_argument(
        "--figure", type=new_figure, default="curves.png", help="new file of the figure"
    )
    options = parser.parse_intermixed_args(arguments)
    runs = find_runs(options.folders)
    curves = collections.defaultdict(lambda: collections.defaultdict(list))
    monitors, switches = {}, {}
    for run, changed in distinctions(runs.values()):
        folder = run["folder"]
        if run["objective"] == "ensemble" or "trained_on" in run:
            continue  # has no epochs
        if folder.parent in runs:
            continue  # comes after its parent's
        monitor = monitors[run["dataset"]] = task_of(run).monitor
        curve = read_curve(folder, monitor)
        if folder / "scst" in runs:
            switches[run["dataset"]] = len(curve)
            curve += read_curve(folder / "scst", monitor)
        curves[run["dataset"]][label_of(run, changed)].append(curve)
    figure = Figure(figsize=(6 * len(curves), 4), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, (dataset, models) in zip(panels, curves.items(), strict=True):
        draw(panel, models)
        if dataset in switches:
            panel.axvline(switches[dataset] + 0.5, color="gray", linestyle=":")
        score = SCORES[monitors[dataset]]
        panel.set(title=dataset, xlabel="epoch", ylabel=f"validation {score}")
        panel.legend()
    with creating(options.figure) as partial:
        figure.savefig(partial, dpi=100)
    print(f"Wrote {options.figure}")


def read_curve(folder, monitor):
    return [epoch[monitor] for epoch in read_history(folder, monitor)]


def draw(panel, models):
    for model, runs in models.items():
        epochs = min(map(len, runs))
        values = np.array([run[:epochs] for run in runs])
        places = np.arange(1, epochs + 1)
        panel.plot(places, values.mean(axis=0), label=model)
        panel.fill_between(places, values.min(axis=0), values.max(axis=0), alpha=0.2)


if __name__ == "__main__":
    start(main)
