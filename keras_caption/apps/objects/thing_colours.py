"""The colour of a thing, from the colours of pixels in and around its box.

Logistic regressions, see `keras_caption.apps.objects.details`, over shares of each
colour and of others, and over the thing's category.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from keras_caption.apps.objects.details import COLOUR, details, probability_of
from keras_caption.apps.objects.object_colours import COLOURS, shares_near

THING = "thing"  # of rows of the table
# Categories of things that have a colour in common with the regressions.
_NAMES = """
bicycle car motorcycle airplane bus train truck boat fire_hydrant bench backpack
umbrella handbag suitcase frisbee surfboard chair couch toilet oven sink refrigerator
teddy_bear
"""
THINGS = tuple(name.replace("_", " ") for name in _NAMES.split())
# What people call a colour, of those that are measured; the first seven are bright.
SHADES = {
    "red": ("red",),
    "orange": ("orange",),
    "yellow": ("yellow",),
    "green": ("green",),
    "blue": ("blue", "light blue", "dark blue"),
    "purple": ("purple",),
    "pink": ("pink",),
    "black": ("black",),
    "white": ("white",),
    "grey": ("dark grey", "grey", "light grey"),
    "brown": ("brown", "tan"),
}
BRIGHT = tuple(SHADES)[:7]
SAID = ("red", "white", "blue")  # others were right too rarely
# Parts of a box, as shares of its width and height; the last is what is around it.
PARTS = (0.3, 0.55, 0.8, 1.0, None)
MORE = 2.0  # times as much of a colour as of any other bright one
LEAST_AREA = 0.015  # of a box, as a share of the photo


def likely_thing_colour(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    category: str,
    box: Any,
) -> tuple[str, float] | None:
    """The most probable colour of a thing that is sure, or `None`.

    Args:
        image, extent, box: As in `pixel_shares` of
            `keras_caption.apps.objects.object_colours`.
        category: str, one of `keras_caption.objects.CATEGORIES`.

    Returns:
        The colour and its probability.
    """
    if not has_colour(category, box):
        return None
    shares = shares_of_shades(image, extent, box)
    found = []
    for row in details():
        if (row.kind, row.of) == (COLOUR, THING):
            values = values_of(shares, row.word, category)
            probability = probability_of(f"{row.word} {THING}", values)
            if probability >= row.least and is_foremost(shares, row.word):
                found.append((row.word, probability))
    return max(found, key=lambda x: x[1], default=None)


def has_colour(category: str, box: Any) -> bool:
    """Whether an object is a thing, and large enough, to have a colour."""
    area = (box[2] - box[0]) * (box[3] - box[1])
    return category in THINGS and area >= LEAST_AREA


def shares_of_shades(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    box: Any,
) -> Float[np.ndarray, "5 11"]:
    """Shares of `SHADES` in `PARTS` of a box.

    Args:
        image, extent, box: As in `likely_thing_colour`.
    """
    colours, distances = shares_near(image, extent, box)
    parts = [
        distances > 0.5 if part is None else distances <= part / 2 for part in PARTS
    ]
    nothing = np.zeros(len(COLOURS))
    found = np.array([colours[x].mean(axis=0) if x.any() else nothing for x in parts])
    named = [
        found[:, [COLOURS.index(x) for x in own]].sum(axis=1) for own in SHADES.values()
    ]
    return np.stack(named, axis=1)


def is_foremost(shares: Float[np.ndarray, "5 11"], colour: str) -> bool:
    """Whether a thing has much more of a colour than of any other bright one.

    Args:
        shares, colour: As in `values_of`.
    """
    others = [i for i, name in enumerate(SHADES) if name in BRIGHT and name != colour]
    own = list(SHADES).index(colour)
    return bool(shares[2, own] >= MORE * shares[2, others].max())


def values_of(
    shares: Float[np.ndarray, "5 11"], colour: str, category: str
) -> Float[np.ndarray, "37"]:
    """What tells whether a thing has a colour: shares of colours, and its category.

    Args:
        shares: float `(5, 11)`, see `shares_of_shades`.
        colour: str, one of `SHADES`.
        category: str, one of `THINGS`. A sink is white rather than a bus.
    """
    names = tuple(SHADES)
    others = shares[2, [names.index(x) for x in BRIGHT if x != colour]]
    dark, light = (shares[1:3, names.index(x)] for x in ("black", "white"))
    plain = [shares[2, names.index(x)] for x in ("grey", "brown", "orange")]
    own = shares[:, names.index(colour)]
    measured = np.sqrt([*own, others.sum(), others.max(), *dark, *light, *plain])
    return np.append(measured, [name == category for name in THINGS])
