"""The place of a photo, from ImageNet's classes of the whole photo and its colours.

Logistic regressions, see `details`: grass by the colours of the
photo's pixels, other places by these and the logarithms of ImageNet's probabilities.
"""

import re
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float32

from keras_caption.apps.objects.details import (
    PLACE,
    class_logits,
    details,
    probability_of,
)
from keras_caption.apps.objects.object_colours import shares_of_colours

BANDS = 3  # horizontal bands of a photo, of each of which colours are measured
POINTS = 12  # rows of pixels of a band, and a third of its columns


class Place(NamedTuple):
    """A place that may be said.

    Attributes:
        phrase: str, what is said.
        words: str, a regular expression of what else people say of it.
        by_pixels: bool, whether the pixels alone tell.
    """

    phrase: str
    words: str
    by_pixels: bool = False


_WATER = "(?:water|ocean|sea|lake|river|pool|pond|stream|surf|waves?|creek)"
PLACES = {
    "snow": Place("in the snow", r"snow|snowy|ski|skiing|snowboard\w*|skier"),
    "water": Place(
        "in the water",
        r"(?:in|into|on|through|across|under) (?:the |a |an )?(?:\w+ ){0,2}"
        rf"{_WATER}|swim\w*|surfs?|surfing|surfer|splash\w*|wad(?:es|ing)|kayak\w*"
        r"|canoe\w*",
    ),
    "beach": Place("on a beach", "beach|shore|seashore|shoreline|sand|sandy"),
    "mountains": Place(
        "in the mountains", r"mountains?|mountain\w+|peaks?|cliffs?|hills?|hill\w+"
    ),
    "rocks": Place("on rocks", r"rocks?|rocky|boulders?|cliffs?|cliffside|stones?"),
    "grass": Place(
        "on grass",
        "grass|grassy|lawn|fields?|meadow|pasture|yard|backyard|pitch",
        by_pixels=True,
    ),
    "street": Place("on a street", "streets?|roads?|roadway|intersection|traffic"),
}


def says(place: str, caption: str) -> bool:
    """Whether a caption of a person says a place, one of `PLACES`."""
    return bool(re.search(rf"\b(?:{PLACES[place].words})\b", caption.lower()))


def likely_places(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    classes: Float[np.ndarray, "1000"] | None = None,
) -> list[dict[str, Any]]:
    """The places of a photo, the most probable first.

    Args:
        image, extent: As in `keras_caption.apps.objects.object_colours.likely_colour`.
        classes: float `(1000,)`, probabilities of ImageNet's classes in the whole
            photo, or `None`, which leaves places by pixels.

    Returns:
        List of dict of `name`, one of `PLACES`; `phrase`, str; and `probability`.
    """
    found, values = [], values_of(image, extent, classes)
    for name in (row.word for row in details() if row.kind == PLACE):
        place = PLACES[name]
        if place.by_pixels in values:
            probability = round(probability_of(name, values[place.by_pixels]), 4)
            found.append(
                {"name": name, "phrase": place.phrase, "probability": probability}
            )
    return sorted(found, key=lambda x: -x["probability"])


def values_of(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    classes: Float[np.ndarray, "1000"] | None = None,
) -> dict[bool, np.ndarray]:
    """What tells the places of a photo.

    Args:
        image, extent, classes: As in `likely_places`.

    Returns:
        dict from `Place.by_pixels` to float `(48,)` if it is True, else `(1048,)`,
        which needs `classes`.
    """
    bands = colours_of_bands(image, extent)
    values = {True: bands}
    if classes is not None:
        values[False] = np.append(class_logits(classes), bands)
    return values


def colours_of_bands(
    image: Float32[np.ndarray, "size size 3"], extent: Float32[np.ndarray, "2"]
) -> Float32[np.ndarray, "48"]:
    """Square roots of the shares of colours in each third of a photo, from the top."""
    count = BANDS * POINTS
    shares = (np.arange(count) + 0.5) / count
    pixels = (shares[:, None] * extent * len(image)).astype(int)  # x and y
    colours = shares_of_colours(image[pixels[:, 1][:, None], pixels[:, 0]])
    bands = colours.reshape(BANDS, POINTS, count, -1).mean(axis=(1, 2))
    return np.sqrt(bands).reshape(-1)
