"""Validation scores of runs, epoch by epoch."""

import collections
import itertools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from keras_caption.apps.report.run_report.finished_run import (
    ASIDE,
    RunRecord,
    tell_apart,
)
from keras_caption.base.errors import InputError

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

SCORES = {"val_cider": "CIDEr-D", "val_bleu": "BLEU", "val_accuracy": "accuracy"}
PANEL = 3.4, 2.4  # inches: a column of a paper
STYLE: dict["RcKeyType", Any] = {
    "font.size": 8,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
}
# Colours and dashes: lines can be distinguished in grey too.
LINES = tuple(
    zip(
        ("#000000", "#c0504d", "#4f81bd", "#9bbb59", "#8064a2", "#f79646"),
        ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2))),
        strict=True,
    )
)
LABEL = 34  # characters in a line of the legend


def curves_figure(runs: Sequence[RunRecord]) -> Figure:
    """Plots the validation scores of runs (NG-SAN, Fig. 2).

    A line is the mean over runs that differ in their seed only; the band around it is
    their range. Self-critical training is drawn behind the training that it continues,
    after a dotted line. There is one panel for each dataset.

    Args:
        runs: Sequence of `RunRecord`.

    Returns:
        The figure; `figure.savefig(path)` writes it.

    Raises:
        InputError: If a run has no epochs.
    """
    # The curve of a self-critical run includes that of the run before.
    folders = {run.folder for run in runs}
    runs = [run for run in runs if run.folder / "scst" not in folders]
    datasets: dict[str, dict[str, list[RunRecord]]]
    datasets = collections.defaultdict(lambda: collections.defaultdict(list))
    for run in runs:
        settings = run.settings
        key = (
            str([(k, x) for k, x in settings.items() if k not in (*ASIDE, "seed")])
            + run.name
        )
        datasets[run.dataset][key].append(run)
    with matplotlib.rc_context(STYLE):
        width, height = PANEL
        figure = Figure(figsize=(width * len(datasets), height), layout="constrained")
        panels = figure.subplots(1, len(datasets), squeeze=False)[0]
        for panel, (dataset, groups) in zip(panels, datasets.items(), strict=True):
            names = tell_apart([group[0] for group in groups.values()])
            styles = itertools.cycle(LINES)
            for name, group, (colour, dash) in zip(
                names, groups.values(), styles, strict=False
            ):
                values, switch = scores_of(group)
                epochs = np.arange(1, values.shape[1] + 1)
                mean = values.mean(axis=0)
                label = textwrap.fill(name, LABEL)
                panel.plot(epochs, mean, color=colour, linestyle=dash, label=label)
                if len(values) > 1:
                    band = values.min(axis=0), values.max(axis=0)
                    panel.fill_between(epochs, *band, color=colour, alpha=0.15, lw=0)
                if switch:
                    panel.axvline(switch + 0.5, color="gray", linestyle=":", lw=0.8)
            monitor = next(iter(groups.values()))[0].kind.monitor
            score = SCORES.get(monitor, monitor)
            panel.set(xlabel="epoch", ylabel=f"validation {score}")
            panel.xaxis.get_major_locator().set_params(integer=True)
            panel.spines[["top", "right"]].set_visible(False)
            panel.legend(frameon=False).set_in_layout(False)
            if len(datasets) > 1:
                panel.set_title(dataset)
        figure.canvas.draw()  # here, since the style ends with the block
    return figure


def scores_of(group: Sequence[RunRecord]) -> tuple[np.ndarray, int]:
    """The scores of runs that differ in their seed only, up to their common last epoch.

    Args:
        group: Sequence of `RunRecord`.

    Returns:
        float `(runs, epochs)`, and the number of epochs before self-critical training.
    """
    curves, switch = [], 0
    for run in group:
        monitor = run.kind.monitor
        curve = [epoch[monitor] for epoch in run.history]
        if not curve:
            raise InputError(f"{run.folder} has no epochs to plot: it has no history.")
        before = run.folder.parent
        if run.folder.name == "scst" and (before / "history.json").exists():
            first = RunRecord(before, run.description).history
            switch = len(first)
            curve = [epoch[monitor] for epoch in first] + curve
        curves.append(curve)
    epochs = min(map(len, curves))
    return np.array([curve[:epochs] for curve in curves]), switch
