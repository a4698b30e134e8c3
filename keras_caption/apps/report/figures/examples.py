"""Draws the captions and the attention of several models for the same images."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib import patheffects
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from keras_caption.apps.report.results.examples import Example, Line
from keras_caption.apps.report.run_report.finished_run import FinishedRun, tell_apart
from keras_caption.apps.report.run_report.shown_examples import (
    common_scores,
    merged_examples,
)
from keras_caption.apps.report.visualization.attention import own_panels
from keras_caption.apps.report.visualization.fonts import find_fonts
from keras_caption.base.errors import InputError

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

WIDTH = 6.9  # inches: a page of two columns
# Number of images, images in a row, and height of an image in inches.
CAPTIONED, IN_ROW, CAPTIONED_HEIGHT = 8, 2, 1.25
# Number of images, panels in a row, and height of a row in inches.
SHOWN, IN_LINE, PANEL_HEIGHT = 1, 5, 1.75
TITLE = 0.2  # height of a line of text in inches
STROKES = (("-", "\u2501"), ("--", "\u2505"))  # styles of frames, and their letters
FRAMED, LEAST = len(STROKES), 0.1  # most frames of a word, and least framed attention
HALO = [patheffects.withStroke(linewidth=2, foreground="white")]
STYLE: dict["RcKeyType", Any] = {"font.size": 7, "axes.linewidth": 0.4}
PERSON = "GT"


def captions_figure(runs: Sequence[FinishedRun], ids: Sequence[str] = ()) -> Figure:
    """Shows captions of several runs beside a person's caption (NG-SAN, Fig. 5).

    AoANet's Table 3 shows the same for other images. The papers choose images by hand.
    By default, this figure shows the eight images in which the scores of the first and
    the last run differ most, whichever run is better.

    Args:
        runs: Sequence of `FinishedRun` on one test split.
        ids: Sequence of str, ids of images to show instead.

    Returns:
        The figure; `figure.savefig(path)` writes it.

    Raises:
        InputError: If the runs share no image, or an id is unknown.
    """
    names, examples = chosen_examples(runs, ids, CAPTIONED)
    rows = -(-len(examples) // IN_ROW)
    with matplotlib.rc_context(STYLE):
        size = WIDTH, CAPTIONED_HEIGHT * rows
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(
            rows, 2 * IN_ROW, width_ratios=[2, 3] * IN_ROW, squeeze=False
        ).ravel()
        for panel in panels:
            panel.axis("off")
        for number, example in enumerate(examples):
            image, text = panels[2 * number : 2 * number + 2]
            show(image, example)
            outline(image, example)
            captions = [
                (name, text_of(line))
                for name, line in zip(names, example.lines, strict=True)
            ]
            captions += [(PERSON, reference) for reference in example.references[:1]]
            lines = [textwrap.fill(f"{who}: {what}", 36) for who, what in captions]
            text.text(0, 1, "\n".join(lines), va="top", parse_math=False)
        find_fonts(figure).canvas.draw()  # here, since the style ends with the block
    return figure


def attention_figure(runs: Sequence[FinishedRun], ids: Sequence[str] = ()) -> Figure:
    """Shows the attention of several runs, word by word (AoANet, Fig. 8).

    The first panel shows the mean over all words of a caption. Further panels show
    words whose attention differs from the mean by a fifth or more, as in
    `keras_caption.visualization.attention_over_words`. Frames mark the two areas with
    most attention, if they have at least a tenth; their names and shares are written
    above. AoANet's figure brightens areas by attention, for each word; frames hide
    nothing, and can be read in grey.

    Args:
        runs, ids: As in `captions_figure`; the default is one image.

    Returns:
        The figure; `figure.savefig(path)` writes it.

    Raises:
        InputError: As in `captions_figure`, or if the attention of a run is not known.
    """
    names, examples = chosen_examples(runs, ids, SHOWN)
    rows = []
    for example in examples:
        for name, line in zip(names, example.lines, strict=True):
            if line.attention is None:
                raise InputError(f"The attention of {name} is not known.")
            panels = own_panels(line.words, np.asarray(line.attention.weights))
            rows += [
                (name, line, example, panels[i : i + IN_LINE], i)
                for i in range(0, len(panels), IN_LINE)
            ]
    with matplotlib.rc_context(STYLE):
        heights = [PANEL_HEIGHT + (not start) * TITLE for *_, start in rows]
        figure = Figure(figsize=(WIDTH, sum(heights) + TITLE), layout="constrained")
        parts = figure.subfigures(len(rows), height_ratios=heights, squeeze=False)
        parts = parts[:, 0]
        for part, (name, line, example, shown, start) in zip(parts, rows, strict=True):
            panels = part.subplots(1, IN_LINE)
            if not start:
                title = f"{name}: {text_of(line)}"
                part.suptitle(title, x=0.01, ha="left", fontsize=8)
            for panel in panels:
                panel.axis("off")
            for panel, (word, weights) in zip(panels, shown, strict=False):
                show(panel, example)
                shares = frame(panel, line, weights)
                panel.set_title(
                    "\n".join([word, *shares, *[""] * (FRAMED - len(shares))]),
                    fontsize=7,
                    loc="left",
                    parse_math=False,
                )
        references = [x.references[0] for x in examples if x.references]
        if references:
            label = f"{PERSON}: {' / '.join(references)}"
            figure.supxlabel(label, x=0.01, ha="left", fontsize=8)
        find_fonts(figure).canvas.draw()  # here, since the style ends with the block
    return figure


def chosen_examples(
    runs: Sequence[FinishedRun], ids: Sequence[str], count: int
) -> tuple[list[str], list[Example]]:
    """Names of runs, and examples: of the ids, or with the greatest differences."""
    outcomes = [run.task.outcome(run.model, run.folder) for run in runs]
    keys, scores = common_scores(runs, outcomes)
    by_name = {str(key): key for key in keys}
    for name in ids:
        if name not in by_name:
            raise InputError(f"The runs have no test image {name!r} in common.")
    ranked = sorted(keys, key=lambda key: -abs(scores[0][key] - scores[-1][key]))
    chosen: list[Any] = [by_name[name] for name in ids] or ranked[:count]
    examples = merged_examples(runs, scores, chosen)
    for example in examples.values():
        translates = example.source is not None
        if translates or any(x.answer is not None for x in example.lines):
            does = "translates" if translates else "answers"
            raise InputError(f"The figure shows captions, but {runs[0].folder} {does}.")
    return tell_apart(runs), [examples[key] for key in chosen]


def text_of(line: Line) -> str:
    """The words of a line."""
    return line.gap.join(line.words)


def show(panel: Any, example: Example) -> None:
    """Shows an image in a panel; an unknown image is a white rectangle."""
    panel.set_anchor("N")
    image = example.image
    if image is None:
        image = np.full((96, 128, 3), 255, "uint8")
        panel.axis("on")
        panel.set(xticks=[], yticks=[])
    panel.imshow(image)


def outline(panel: Any, example: Example) -> None:
    """Draws the named areas of an unknown image in a panel."""
    attention = example.lines[0].attention
    if example.image is not None or attention is None:
        return
    areas, names = attention.areas, attention.names
    if areas is None or names is None:
        return
    for area, name in zip(areas, names, strict=True):
        if name:
            corners = on_panel(panel, area)
            add_frame(panel, corners, linewidth=0.3, linestyle="--")
            panel.text(*corners[:2], name, fontsize=5, va="bottom", clip_on=True)


def frame(panel: Any, line: Line, weights: np.ndarray) -> list[str]:
    """Frames the areas with most attention in a panel.

    Returns:
        Lines of text: the stroke of each frame, the name of its area, and its share.
    """
    attention = line.attention
    assert attention is not None
    assert attention.areas is not None  # of an image
    names = attention.names or [""] * len(weights)
    best = np.argsort(-weights)[:FRAMED]
    order = [i for i in best if weights[i] >= LEAST or i == best[0]]
    for item, (style, _) in zip(order, STROKES, strict=False):
        corners = on_panel(panel, attention.areas[item])
        add_frame(panel, corners, 1.2, linestyle=style, path_effects=HALO)
    return [
        " ".join(f"{stroke} {names[item]} {weights[item]:.0%}".split())
        for item, (_, stroke) in zip(order, STROKES, strict=False)
    ]


def on_panel(panel: Any, area: np.ndarray) -> np.ndarray:
    """The corners of an area in the coordinates of a panel with an image."""
    left, right = panel.get_xlim()
    bottom, top = panel.get_ylim()
    return np.tile([left, top], 2) + area * np.tile([right - left, bottom - top], 2)


def add_frame(panel: Any, corners: Any, linewidth: float, **style: Any) -> None:
    """Adds a black frame to a panel."""
    x1, y1, x2, y2 = corners
    shape = Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor="k", **style)
    shape.set_linewidth(linewidth)
    panel.add_patch(shape)
