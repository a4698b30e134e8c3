"""Plots of a page, as SVG that takes the colour of the page's text."""

import collections
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

COLOURS = ("#2f7fc1", "#d4711c")  # of runs; both are clear on white and on black
DASHES = ("-", "--")
INK = "#010203"  # becomes the colour of the text
SIZE = 3.7, 2.5  # inches
STYLE = {
    "svg.fonttype": "none",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "legend.frameon": False,
}


def curves(
    histories: Mapping[str, Sequence[dict[str, Any]]],
    logs: Sequence[str],
    label: str,
) -> str:
    """Plots logs of epochs.

    Args:
        histories: dict from the name of a run to the logs of its epochs.
        logs: Names of logs; the first is drawn as a line, the second dashed.
        label: str, of the vertical axis.

    Returns:
        SVG; empty if no run has one of the logs.
    """
    known = {log for epochs in histories.values() for epoch in epochs for log in epoch}
    logs = [log for log in logs if log in known]
    if not logs:
        return ""

    def plot(panel):
        for colour, (run, epochs) in zip(COLOURS, histories.items(), strict=False):
            for log, dash in zip(logs, DASHES, strict=False):
                points = [(e["epoch"], e[log]) for e in epochs if log in e]
                parts = [run] if len(histories) > 1 else []
                parts += [log] if len(logs) > 1 else []
                style = {"color": colour, "linestyle": dash, "marker": "."}
                panel.plot(*zip(*points, strict=True), label=", ".join(parts), **style)
        panel.set(xlabel="epoch", ylabel=label)
        panel.xaxis.get_major_locator().set_params(integer=True)
        if len(histories) * len(logs) > 1:
            panel.legend()

    return svg(plot, label)


def lengths(texts: Mapping[str, Sequence[int]]) -> str:
    """Plots how many words texts have.

    Args:
        texts: dict from who wrote them to the numbers of their words.

    Returns:
        SVG.
    """

    def plot(panel):
        for (who, counts), colour in zip(texts.items(), (*COLOURS, INK), strict=False):
            shares = collections.Counter(counts)
            places = range(min(shares), max(shares) + 1)
            values = [100 * shares[place] / len(counts) for place in places]
            panel.plot(places, values, label=who, color=colour, marker=".")
        every = [count for counts in texts.values() for count in counts]
        panel.set(xlim=(min(every) - 1, max(every) + 1), ylim=(0, None))
        panel.set(xlabel="words", ylabel="% of texts")
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.legend()

    return svg(plot, "lengths")


def svg(plot, name):
    """SVG of a panel that a function fills."""
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=SIZE, layout="constrained")
        plot(figure.subplots())
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    content = file.getvalue().replace(INK, "currentColor")
    return content[content.index("<svg") :]
