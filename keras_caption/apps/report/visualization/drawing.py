"""How attention over each kind of input is drawn on an image."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from keras import ops
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from keras_caption.base.errors import InputError
from keras_caption.inputs import Frames, InputKind

FRAMES = 3  # items that are framed in figures
LABELLED = 0.25  # weight of an item that is labelled too
COLOUR = "#b3123c"
# Where labels stand in their frames: others than the greatest elsewhere, so that those
# of objects that lie within each other do not cover each other.
CORNERS = ("left", "top"), ("left", "bottom"), ("right", "bottom")
BAR = 0.3  # height of the greatest bar below a film strip, of the height of that
MAX_LABELS = 20  # times below a film strip


def draw(
    panel: Axes,
    kind: InputKind,
    inputs: dict[str, Any],
    weights: Float[np.ndarray, " M"],
    size: tuple[int, int],
) -> None:
    """Shows attention weights on an image, as `DRAWINGS` or the items' areas say.

    Args:
        panel: `matplotlib.axes.Axes` that shows the image; may be added to.
        kind: Kind of input of the items.
        inputs: dict of tensors for one example: those that `complete` of the kind
            returns, others that the example has, and `labels`, a list of str, of the
            items.
        weights: float `(M,)`, over the items; 1 is the greatest of all panels.
        size: Height and width of the image.

    Raises:
        InputError: If the kind has neither.
    """
    for known in type(kind).__mro__:
        if known in DRAWINGS:
            DRAWINGS[known](panel, inputs, weights, size)
            return
    areas = kind.areas(inputs)
    if areas is None:
        raise InputError(
            f"Attention over {kind.keys[0]} has no figure: its kind has no `areas`, "
            "and no function in `keras_caption.visualization.DRAWINGS`."
        )
    frame_boxes(panel, areas[0], inputs["labels"], weights, size)


def frame_boxes(
    panel: Axes,
    boxes: Float[np.ndarray, "M 4"],
    labels: list[str],
    weights: Float[np.ndarray, " M"],
    size: tuple[int, int],
) -> None:
    """Frames the boxes of the greatest weights in a figure, and labels them.

    Args:
        panel: `matplotlib.axes.Axes` that shows the image.
        boxes: float `(M, 4)`, in [0, 1], as `(x1, y1, x2, y2)`.
        labels: List of str, M of them.
        weights: float `(M,)`, in [0, 1]; the greater, the clearer the frame.
        size: Height and width of the image.
    """
    height, width = size
    greatest = np.argsort(weights)[::-1][:FRAMES]
    for item, (side, end) in reversed([*zip(greatest, CORNERS, strict=False)]):
        x1, y1, x2, y2 = boxes[item] * [width, height, width, height]
        frame = Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False)
        alpha = float(weights[item])
        frame.set(edgecolor=COLOUR, linewidth=1 + 2 * alpha, alpha=alpha)
        panel.add_patch(frame)
        if alpha >= LABELLED:
            x, y = x1 if side == "left" else x2, y1 if end == "top" else y2
            panel.text(
                x,
                y,
                labels[item],
                color="white",
                fontsize=8,
                parse_math=False,
                ha=side,
                va=end,
                clip_on=True,
                bbox={"facecolor": COLOUR, "edgecolor": "none", "pad": 1},
            )


def draw_bars(
    panel: Axes,
    inputs: dict[str, Any],
    weights: Float[np.ndarray, " T"],
    size: tuple[int, int],
) -> None:
    """Shows the weight of every frame as a bar below it.

    The image is a film strip: T columns of one width, a frame in each. Times, if
    known, are written below.
    """
    height, width = size
    foot = height * (1 + BAR) - 0.5
    panel.set(xlim=(-0.5, width - 0.5), ylim=(foot, -0.5))
    column = width / len(weights)
    centres = (np.arange(len(weights)) + 0.5) * column - 0.5
    bars = -BAR * height * weights  # upwards, where y grows downwards
    panel.bar(centres, bars, 0.8 * column, foot, color="#1b4f8a")
    borders = np.arange(1, len(weights)) * width / len(weights) - 0.5
    panel.vlines(borders, -0.5, height - 0.5, "white", linewidth=1, zorder=2)
    if "times" in inputs:
        times = np.ravel(ops.convert_to_numpy(inputs["times"]))
        shown = np.arange(0, len(times), math.ceil(len(times) / MAX_LABELS))
        middles = (shown + 0.5) * width / len(times) - 0.5
        labels = [f"{time:.1f} s" for time in times[shown]]
        panel.set_xticks(middles, labels, fontsize=8)


# Functions of a panel, inputs, weights and a size, as of `draw`, by kinds of input that
# are not drawn as frames around their areas.
DRAWINGS: dict[type[InputKind], Callable] = {Frames: draw_bars}
