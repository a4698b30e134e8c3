from typing import Any

import numpy as np
from jaxtyping import Float

from keras_caption.errors import missing_extras

FRAMES = 3  # items that are framed in figures
LABELLED = 0.25  # weight of an item that is labelled too
COLOUR = "#b3123c"
# Corners of the labels in their frames, by rank of the weight. Different corners keep
# the labels of nested objects apart.
CORNERS = ("left", "top"), ("left", "bottom"), ("right", "bottom")


def frame_boxes(
    panel: Any,
    boxes: Float[np.ndarray, "M 4"],
    labels: list[str],
    weights: Float[np.ndarray, " M"],
    size: tuple[int, int],
) -> None:
    """Draws and labels the boxes with the greatest weights in a figure.

    Args:
        panel: `matplotlib.axes.Axes` that shows the image.
        boxes: float `(M, 4)`, in [0, 1], as `(x1, y1, x2, y2)`.
        labels: List of str, M of them.
        weights: float `(M,)`, in [0, 1]; the greater, the clearer the frame.
        size: Height and width of the image.
    """
    with missing_extras():
        from matplotlib.patches import Rectangle

    height, width = size
    # Drawn in ascending order, so that the greatest weight is on top.
    greatest = np.argsort(weights)[::-1][:FRAMES]
    for item, (side, end) in reversed([*zip(greatest, CORNERS, strict=False)]):
        x1, y1, x2, y2 = boxes[item] * [width, height, width, height]
        frame = Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False)
        alpha = float(weights[item])
        frame.set(edgecolor=COLOUR, linewidth=1 + 2 * alpha, alpha=alpha)
        panel.add_patch(frame)
        if alpha >= LABELLED:
            ground = {"facecolor": COLOUR, "edgecolor": "none", "pad": 1}
            text = {"color": "white", "fontsize": 8, "parse_math": False}
            x, y = x1 if side == "left" else x2, y1 if end == "top" else y2
            place = {"ha": side, "va": end, "clip_on": True}
            panel.text(x, y, labels[item], bbox=ground, **text, **place)
