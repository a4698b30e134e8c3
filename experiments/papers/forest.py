"""A figure of the papers' effects beside ours."""

import re

import matplotlib
from matplotlib.figure import Figure

STYLE = {
    "font.size": 8,
    "axes.linewidth": 0.6,
    "svg.hashsalt": "effects",
}
COLOURS = {"came out": "#1a7f37", "reversed": "#c0504d"}
OTHERS, PAPER = "#6b7280", "#000000"
INTERVAL = re.compile(r"([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\)")
LINEAR = 5  # points up to which the axis is linear; beyond, it is logarithmic
ROW, WIDTH = 0.24, 7  # inches
TICKS = -50, -20, -5, -2, 0, 2, 5, 20, 50


def forest(lines):
    """Draws effects with their intervals, and the papers' beside them.

    Args:
        lines: List of dict, the lines of `effects.csv`. Those without an interval are
            left out.

    Returns:
        `matplotlib.figure.Figure`.
    """
    shown = [line for line in lines if INTERVAL.match(line["ours"])]
    with matplotlib.rc_context(STYLE):
        figure = Figure((WIDTH, ROW * len(shown) + 0.9), layout="constrained")
        panel = figure.subplots()
        panel.axvline(0, color=OTHERS, linewidth=0.6)
        for row, line in enumerate(shown):
            mean, low, high = map(float, INTERVAL.match(line["ours"]).groups())
            colour = COLOURS.get(line["verdict"], OTHERS)
            panel.plot([low, high], [row, row], color=colour, linewidth=1.5)
            panel.plot(mean, row, "o", color=colour, markersize=4)
            if line["paper's"]:
                paper = float(line["paper's"])
                panel.plot(paper, row, "D", color=PAPER, fillstyle="none", markersize=4)
        panel.set_xscale("symlog", linthresh=LINEAR)
        panel.set_xticks(TICKS, [f"{x:+d}" if x else "0" for x in TICKS])
        panel.set_yticks(
            range(len(shown)),
            [f"{line['claim']}, {line['seeds']} seeds" for line in shown],
        )
        panel.set_ylim(len(shown) - 0.5, -0.5)
        panel.set_xlabel(
            "points of CIDEr-D, BLEU or accuracy, 95 % intervals\n"
            f"(logarithmic beyond {LINEAR})\n"
            "green: came out; red: reversed; diamonds: the papers'"
        )
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params("y", length=0)
    return figure


def save(lines, path):
    """Writes `forest` as an SVG file, the same for the same lines."""
    figure = forest(lines)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, format="svg", metadata={"Date": None})
