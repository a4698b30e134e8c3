"""Shares of colours in the pixels of detected objects and photos.

Needs NumPy alone: `keras_caption.objects.ColouredObjects` computes shares of the same
colours in graphs.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Float32

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

AROUND = 0.25  # of a box's width and height, on each side, that are its surroundings
BACKGROUND = 0.5  # of the shares around a box that are taken from those in its middle
POINTS = 64  # rows and columns of pixels that are looked at in and around a box


def pixel_shares(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    box: Any,
) -> Float32[np.ndarray, "16"]:
    """Shares of `COLOURS` in an object: in the middle of its box, less what is around.

    Args:
        image: float32 `(size, size, 3)`, 0 to 255, RGB, the square that a detector
            reads.
        extent: float32 `(2,)`, the photo's shares of its width and height.
        box: x1, y1, x2, y2 divided by the photo's width and height.

    Returns:
        float32 `(16,)`; not less than 0.0001, so that some colour has the most.
    """
    colours, distances = shares_near(image, extent, box)
    inside, around = distances <= INNER / 2, distances > 0.5
    found = colours[inside].mean(axis=0)
    if around.any():
        found = found - BACKGROUND * colours[around].mean(axis=0)
    return np.maximum(found, 1e-4)


def shares_near(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    box: Any,
) -> tuple[Float32[np.ndarray, "64 64 16"], Float[np.ndarray, "64 64"]]:
    """Shares of `COLOURS` in pixels in and around a box.

    Args:
        image, extent, box: As in `pixel_shares`.

    Returns:
        float32 `(64, 64, 16)`, of pixels at equal distances, in the photo; and float
        `(64, 64)`, their distances from the centre, 0.5 at the sides of the box.
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
    return colours, distances


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
