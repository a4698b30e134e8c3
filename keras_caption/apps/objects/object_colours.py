"""Colours of detected objects, as people call them, from the pixels of their boxes.

Needs NumPy alone: `keras_caption.objects.ColouredObjects` computes shares of the same
colours in graphs.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float32

# Red, green and blue of colours that people name, and of shades of grey.
RGB = {
    "black": (0, 0, 0),
    "dark grey": (70, 70, 70),
    "grey": (128, 128, 128),
    "light grey": (195, 195, 195),
    "white": (255, 255, 255),
    "red": (200, 30, 30),
    "orange": (230, 120, 30),
    "yellow": (235, 220, 60),
    "green": (40, 130, 50),
    "blue": (60, 110, 200),
    "light blue": (110, 170, 230),
    "dark blue": (30, 40, 80),
    "purple": (100, 50, 140),
    "pink": (230, 140, 170),
    "brown": (110, 70, 40),
    "tan": (200, 175, 140),
}
COLOURS = tuple(RGB)
# Share of a box's width and height that is its middle, where background is rarer.
INNER = 0.55
SPREAD = 12.0  # standard deviation of a colour in CIELAB
# From linear sRGB to XYZ, relative to the white of D65.
TO_XYZ = (
    (0.433953, 0.376219, 0.189828),
    (0.212673, 0.715152, 0.072175),
    (0.017758, 0.109477, 0.872766),
)

# The word for each of `COLOURS` that has one of another name.
WORD = {
    "dark grey": "black",
    "light grey": "grey",
    "light blue": "blue",
    "dark blue": "blue",
    "tan": "brown",
}
WORDS = (
    *("black", "grey", "white", "red", "orange", "yellow"),
    *("green", "blue", "purple", "pink", "brown"),
)
# How often captions of COCO give a category each of `WORDS`: of val2017, 4,000 images.
# Of other categories they give fewer than three nouns in twenty a colour.
SAID = {
    "fire hydrant": (5, 2, 8, 36, 7, 15, 3, 9, 0, 0, 0),
    "cat": (67, 38, 57, 0, 29, 5, 0, 0, 0, 0, 11),
    "bear": (31, 0, 11, 0, 0, 0, 0, 0, 0, 0, 28),
    "bus": (5, 0, 49, 31, 0, 24, 17, 17, 8, 6, 0),
    "truck": (2, 0, 19, 15, 1, 14, 6, 11, 0, 0, 2),
    "train": (14, 2, 22, 26, 16, 34, 7, 17, 2, 0, 2),
    "dog": (43, 3, 49, 0, 1, 1, 0, 1, 0, 0, 41),
    "cow": (22, 0, 19, 0, 0, 0, 0, 0, 0, 0, 21),
    "bird": (19, 4, 24, 3, 0, 6, 0, 1, 0, 0, 7),
    "horse": (12, 2, 32, 0, 0, 0, 0, 0, 0, 0, 41),
    "toilet": (5, 0, 52, 3, 0, 0, 1, 9, 0, 0, 1),
    "stop sign": (0, 0, 1, 25, 0, 0, 0, 0, 0, 0, 0),
    "tie": (3, 0, 1, 11, 2, 0, 4, 4, 0, 2, 0),
    "frisbee": (1, 0, 11, 5, 2, 4, 7, 2, 2, 0, 0),
    "couch": (9, 3, 6, 3, 2, 0, 2, 4, 0, 0, 6),
    "teddy bear": (3, 1, 11, 0, 0, 1, 0, 0, 0, 1, 17),
}
OF_ALL = (322, 84, 577, 279, 75, 159, 106, 163, 22, 32, 202)
SMOOTHING = 5  # colours of any category, counted with those of one

AROUND = 0.25  # of a box's width and height, on each side, that are its surroundings
BACKGROUND = 0.5  # of the shares around a box that are taken from those in its middle
POINTS = 64  # rows and columns of pixels that are looked at in and around a box


def likely_colour(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    box: Any,
    category: str,
) -> tuple[str, float]:
    """The colour that people are likeliest to call an object, and its probability.

    The probability of a colour is proportional to its share of the pixels, see
    `pixel_shares`, times the square root of how often people say it of the category: a
    dog that looks grey is hardly called so.

    Args:
        image: float32 `(size, size, 3)`, 0 to 255, RGB, the square that a detector
            reads.
        extent: float32 `(2,)`, the photo's shares of its width and height.
        box: x1, y1, x2, y2 divided by the photo's width and height.
        category: str.

    Returns:
        str, one of `WORDS`, and float in [0, 1].
    """
    weights = np.zeros(len(WORDS))
    for colour, share in zip(COLOURS, pixel_shares(image, extent, box), strict=True):
        weights[WORDS.index(WORD.get(colour, colour))] += share
    said = SAID.get(category, (0,) * len(WORDS))
    for i, of_all in enumerate(OF_ALL):
        weights[i] *= math.sqrt(said[i] + SMOOTHING * of_all / sum(OF_ALL))
    best = int(weights.argmax())
    return WORDS[best], float(weights[best] / weights.sum())


def pixel_shares(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    box: Any,
) -> Float32[np.ndarray, "16"]:
    """Shares of `COLOURS` in an object: in the middle of its box, less what is around.

    Args:
        image, extent, box: As in `likely_colour`.

    Returns:
        float32 `(16,)`; not less than 0.0001, so that some colour has the most.
    """
    low, high = np.asarray(box[:2], float), np.asarray(box[2:], float)
    margin = AROUND * (high - low)
    shares = (np.arange(POINTS) + 0.5) / POINTS
    first, last = np.maximum(low - margin, 0), np.minimum(high + margin, 1)
    points = first + (last - first) * shares[:, None]  # (POINTS, x and y)
    pixels = np.minimum((points * extent * len(image)).astype(int), len(image) - 1)
    colours = shares_of_colours(image[pixels[:, 1][:, None], pixels[:, 0]])
    # Distances from the centre, in units of the box's width and height.
    across, down = np.abs((points - (low + high) / 2) / np.maximum(high - low, 1e-6)).T
    distances = np.maximum(down[:, None], across)
    inside, around = distances <= INNER / 2, distances > 0.5
    found = colours[inside].mean(axis=0)
    if around.any():
        found = found - BACKGROUND * colours[around].mean(axis=0)
    return np.maximum(found, 1e-4)


def shares_of_colours(
    pixels: Float32[np.ndarray, "height width 3"],
) -> Float32[np.ndarray, "height width 16"]:
    """Shares of `COLOURS` in each pixel.

    With d the distance of a pixel and a colour in CIELAB, they are
    `softmax(-d^2 / (2 * 12^2))`.

    Args:
        pixels: float32 `(height, width, 3)`, 0 to 255, RGB.

    Returns:
        float32 `(height, width, 16)`, shares that sum to 1.
    """
    named = to_lab(np.array(list(RGB.values()), "float32"))
    distances = np.square(to_lab(pixels)[..., None, :] - named).sum(axis=-1)
    nearness = -distances / np.float32(2 * SPREAD**2)
    shares = np.exp(nearness - nearness.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def to_lab(colours: Float32[np.ndarray, "... 3"]) -> Float32[np.ndarray, "... 3"]:
    """Converts sRGB, float32 `(..., 3)`, 0 to 255, to CIELAB under D65."""
    # The constants are those of the standards: IEC 61966-2-1, and CIE 15.
    x = np.clip(np.asarray(colours, "float32") / np.float32(255), 0, 1)
    x = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    x = x @ np.array(TO_XYZ, "float32").T
    root = np.cbrt(x)
    x, y, z = np.moveaxis(np.where(x > 0.008856, root, 7.787 * x + 16 / 116), -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
