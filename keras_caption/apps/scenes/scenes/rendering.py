import functools
import math
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from keras_caption.apps.scenes.scenes.scene import COLOURS, SceneObject

SIDE = 128
# Scenes are drawn larger by this factor, then reduced, for smooth edges.
SCALE = 2
# Side in pixels of the reduced crop of a region.
CROP = 8


def _star():
    """A star of five points in the unit square."""
    points = []
    for i in range(10):
        radius = 0.2 if i % 2 else 0.5
        angle = -math.pi / 2 + 2 * math.pi * i / 10
        points.append((0.5 + radius * math.cos(angle), 0.5 + radius * math.sin(angle)))
    return points


def _heart():
    points = []
    for t in np.linspace(0, 2 * math.pi, 40, endpoint=False):
        x = 16 * math.sin(t) ** 3
        y = (
            13 * math.cos(t)
            - 5 * math.cos(2 * t)
            - 2 * math.cos(3 * t)
            - math.cos(4 * t)
        )
        points.append((0.5 + x / 33, 0.46 - y / 31))
    return points


def _moon():
    outer = np.linspace(-0.75 * math.pi, 0.75 * math.pi, 24) + math.pi
    inner = outer[::-1]
    points = [(0.55 + 0.5 * math.cos(t), 0.5 + 0.5 * math.sin(t)) for t in outer]
    return points + [
        (0.75 + 0.42 * math.cos(t), 0.5 + 0.36 * math.sin(t)) for t in inner
    ]


POLYGONS = {
    "square": [(0, 0), (1, 0), (1, 1), (0, 1)],
    "triangle": [(0.5, 0), (1, 1), (0, 1)],
    "star": _star(),
    "heart": _heart(),
    "cross": [
        (0.33, 0), (0.67, 0), (0.67, 0.33), (1, 0.33), (1, 0.67), (0.67, 0.67),
        (0.67, 1), (0.33, 1), (0.33, 0.67), (0, 0.67), (0, 0.33), (0.33, 0.33),
    ],
    "diamond": [(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)],
    "moon": _moon(),
    "tree": [
        (0.5, 0), (0.85, 0.4), (0.7, 0.4), (1, 0.8), (0.58, 0.8), (0.58, 1),
        (0.42, 1), (0.42, 0.8), (0, 0.8), (0.3, 0.4), (0.15, 0.4),
    ],
    "house": [
        (0.5, 0), (1, 0.45), (0.88, 0.45), (0.88, 1), (0.12, 1), (0.12, 0.45),
        (0, 0.45),
    ],
    "arrow": [
        (0, 0.35), (0.55, 0.35), (0.55, 0.05), (1, 0.5), (0.55, 0.95), (0.55, 0.65),
        (0, 0.65),
    ],
}  # fmt: skip


def render(objects: Sequence[SceneObject], rng: np.random.Generator) -> np.ndarray:
    """Renders a scene.

    Args:
        objects: Sequence of `SceneObject`, in the order of drawing.
        rng: `numpy.random.Generator`, for the background and shades of colours.

    Returns:
        uint8 `(128, 128, 3)`.
    """
    size = SIDE * SCALE
    # A pale shade, the same everywhere: it must not reveal positions.
    background = tuple(int(c) for c in rng.uniform(165, 225, 3))
    image = Image.new("RGB", (size, size), background)
    draw = ImageDraw.Draw(image)
    for o in objects:
        x1, y1, x2, y2 = (c * size for c in o.box)
        draw_object(draw, o.kind, sample_shade(o.colour, rng), (x1, y1, x2, y2))
    return np.asarray(image.reduce(SCALE))


def sample_shade(colour: str, rng: np.random.Generator) -> tuple[int, int, int]:
    """Samples a shade of a colour, red, green and blue from 0 to 255."""
    shade = np.clip(np.array(COLOURS[colour]) + rng.normal(0, 10, 3), 0, 255)
    red, green, blue = (int(c) for c in shade)
    return red, green, blue


def draw_object(
    draw: ImageDraw.ImageDraw,
    kind: str,
    shade: tuple[int, int, int],
    box: tuple[float, float, float, float],
    angle: float = 0.0,
) -> None:
    """Draws an object with an outline.

    Args:
        draw: `PIL.ImageDraw.ImageDraw` of an image in RGB.
        kind: One of `keras_caption.apps.scenes.scenes.scene.KINDS`.
        shade: Red, green and blue, int from 0 to 255.
        box: x1, y1, x2, y2 in pixels.
        angle: float, clockwise rotation in radians. Defaults to 0.
    """
    outline = tuple(int(0.6 * c) for c in shade)
    x1, y1, x2, y2 = box
    # Proportional: the width of lines must not reveal the size of an object.
    line = max(round(0.04 * min(x2 - x1, y2 - y1)), 1)
    if kind == "circle":
        draw.ellipse(box, fill=shade, outline=outline, width=line)
    elif kind == "ring":
        draw.ellipse(box, outline=shade, width=4 * line)
    else:
        cos, sin = math.cos(angle), math.sin(angle)
        points = [
            (
                x1 + (0.5 + (x - 0.5) * cos - (y - 0.5) * sin) * (x2 - x1),
                y1 + (0.5 + (x - 0.5) * sin + (y - 0.5) * cos) * (y2 - y1),
            )
            for x, y in POLYGONS[kind]
        ]
        draw.polygon(points, fill=shade, outline=outline, width=line)


@functools.cache
def _projection(region_dim):
    values = CROP * CROP * 3
    projection = np.random.default_rng(0).normal(size=(values, region_dim))
    return (projection / math.sqrt(values)).astype("float32")


def crop_features(
    image: np.ndarray, boxes: np.ndarray, region_dim: int = 128
) -> np.ndarray:
    """Computes region features from the pixels of each box.

    Each box is cropped, reduced to 8 x 8 pixels, and its colour values, from -1 to 1,
    are multiplied by a fixed random projection. The smallest objects have about that
    size, so that no blur distinguishes them from large ones.

    Args:
        image: uint8 `(height, width, 3)`.
        boxes: float `(N, 4)`, x1, y1, x2, y2 divided by width and height.
        region_dim: int, size of a feature vector. Defaults to 128.

    Returns:
        float32 `(N, region_dim)`.
    """
    height, width = image.shape[:2]
    whole = Image.fromarray(image)
    pixels = np.stack(
        [
            np.asarray(
                whole.resize(
                    (CROP, CROP),
                    Image.Resampling.BILINEAR,
                    box=(x1 * width, y1 * height, x2 * width, y2 * height),
                )
            )
            for x1, y1, x2, y2 in boxes
        ]
    )
    pixels = pixels.reshape(len(boxes), -1).astype("float32") / 127.5 - 1.0
    return pixels @ _projection(region_dim)
