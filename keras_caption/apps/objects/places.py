"""The place of a photo, from ImageNet's classes, its colours and its objects.

Logistic regressions, see `keras_caption.apps.objects.details`, over the logarithms of
ImageNet's probabilities in the whole photo and the colours of its pixels; some also
over the scores of detected objects, and over the probabilities in the lower half.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float32

from keras_caption.apps.objects.details import (
    PLACE,
    class_logits,
    details,
    probability_of,
)
from keras_caption.apps.objects.imagenet_names import CLASSES
from keras_caption.apps.objects.object_colours import COLOURS, shares_of_colours
from keras_caption.formats.coco_categories import CATEGORIES

BANDS = 3  # horizontal bands of a photo, of each of which colours are measured
POINTS = 12  # rows of pixels of a band, and a third of its columns
GENERAL = 3  # rank of places that say little
# Numbers of values that regressions read, see `values_of`.
OF_PHOTO = CLASSES + BANDS * len(COLOURS)
AND_OBJECTS = OF_PHOTO + len(CATEGORIES)
AND_LOWER_HALF = AND_OBJECTS + CLASSES


class Place(NamedTuple):
    """A place that may be said.

    Attributes:
        phrase: str, what is said of something there.
        words: str, a regular expression of what people say of such photos; if empty,
            their words do not tell.
        others: str, the same of photos elsewhere; if empty, of all in which nobody says
            a word of these.
        alone: str, what is said of a photo of which nothing else is known; empty if
            nothing is.
        rank: int, places of a lower one are said rather.
        inputs: int, number of the first values, see `values_of`, that the regression
            reads.
        of: frozenset of the categories that may be there; if empty, all.
    """

    phrase: str
    words: str
    others: str = ""
    alone: str = ""
    rank: int = 0
    inputs: int = OF_PHOTO
    of: frozenset[str] = frozenset()

    @property
    def is_general(self) -> bool:
        """Whether the place is said only where a caption says nothing else."""
        return self.rank == GENERAL


_WATER = "(?:water|ocean|sea|lake|river|pool|pond|stream|surf|waves?|creek)"
_OUTDOORS = rf"""
outside|outdoors?|{_WATER}|surf\w*|boat\w*|kayak\w*|fountain|beach|shore|sand|sandy|snow\w*
ski\w*|mountain\w*|hills?|cliffs?|rocks?|rocky|grass\w*|lawn|fields?|meadow|pasture|dirt
trees?|woods|forest|park|yard|backyard|garden|playground|sky|path|trail|streets?|roads?
sidewalk|city|traffic|bridge|tracks?|runway|bus|train|airplane|kite|stadium|soccer|football
baseball|frisbee|bmx|zebras?|giraffes?|elephants?|sheep|cows?
"""
_INDOORS = """
indoors?|inside|rooms?|bedroom|kitchen|bathroom|hallway|stairs|floor|carpet|house|home
toilet|sink|oven|refrigerator|microwave|couch|sofa|beds?|desk|table|counter|bowl|plate|tv
television|computer|laptop|restaurant|bar|store|shop|office|museum|stage|gym|mall|subway
"""
_OUTDOORS, _INDOORS = ("|".join(x.split()) for x in (_OUTDOORS, _INDOORS))
_FOOD = CATEGORIES[CATEGORIES.index("bottle") : CATEGORIES.index("cake") + 1]
_THINGS = {
    "potted plant",
    "laptop",
    "mouse",
    "remote",
    "keyboard",
    "cell phone",
    "book",
}
_THINGS |= {"vase", "scissors", "teddy bear"}
ON_TABLES = frozenset(_THINGS.union(_FOOD))
# Who is both indoors and outdoors. Of others, a place as general says nothing.
EVERYWHERE = frozenset({"person", "cat", "dog"})
# What they have with them. Who has that is more rarely outdoors than by the regression.
_CARRIED = ON_TABLES | {"backpack", "handbag", "suitcase", "tie"}
PLACES = {
    "snow": Place(
        "in the snow", r"snow|snowy|ski|skiing|snowboard\w*|skier", alone="snow"
    ),
    "water": Place(
        "in the water",
        r"(?:in|into|on|through|across|under) (?:the |a |an )?(?:\w+ ){0,2}"
        rf"{_WATER}|swim\w*|surfs?|surfing|surfer|splash\w*|wad(?:es|ing)|kayak\w*"
        r"|canoe\w*",
        alone="water",
    ),
    "beach": Place(
        "on a beach", "beach|shore|seashore|shoreline|sand|sandy", alone="a beach"
    ),
    "mountains": Place(
        "in the mountains",
        r"mountains?|mountain\w+|peaks?|cliffs?|hills?|hill\w+",
        alone="mountains",
    ),
    "rocks": Place(
        "on rocks",
        r"rocks?|rocky|boulders?|cliffs?|cliffside|stones?",
        alone="rocks",
    ),
    "grass": Place(
        "on grass",
        "grass|grassy|lawn|fields?|meadow|pasture|yard|backyard|pitch",
        alone="grass",
        inputs=AND_LOWER_HALF,
    ),
    "pavement": Place(
        "on pavement",
        "streets?|roads?|roadway|sidewalk|pavement|paved|concrete|crosswalk|driveway"
        "|asphalt|cobblestones?|parking lot|intersection|traffic",
        rf"{_INDOORS}|snow\w*|beach|sand|sandy|grass\w*|lawn|mountains?|rocks?|{_WATER}",
        inputs=AND_LOWER_HALF,
    ),
    "table": Place("on a table", "", inputs=AND_LOWER_HALF, of=ON_TABLES),
    "street": Place(
        "on a street",
        "streets?|roads?|roadway|intersection|traffic",
        alone="a street",
    ),
    "waterside": Place(
        "by the water",
        rf"{_WATER}|shore|beach|swim\w*|surf\w*|kayak\w*|splash\w*|boats?|canoe\w*"
        r"|raft\w*",
        alone="water",
        rank=1,
    ),
    "trees": Place(
        "near trees",
        "trees?|woods|wooded|forest|jungle",
        _INDOORS,
        rank=2,
        inputs=AND_OBJECTS,
    ),
    "building": Place("near a building", "", rank=2, inputs=AND_LOWER_HALF),
    "outdoors": Place("outdoors", _OUTDOORS, _INDOORS, rank=GENERAL, of=EVERYWHERE),
    "indoors": Place(
        "indoors", _INDOORS, _OUTDOORS, rank=GENERAL, of=EVERYWHERE | _CARRIED
    ),
}


def is_at(place: str, captions: Sequence[str], least: int = 1) -> bool | None:
    """Whether a photo is at a place, by people's captions, or `None`: they do not tell.

    Args:
        place: str, one of `PLACES`.
        captions: Sequence of str.
        least: int, number of captions that say so.
    """
    own = PLACES[place]
    if not own.words:
        return None

    def count(words):
        pattern = re.compile(rf"\b(?:{words})\b")
        return sum(bool(pattern.search(x.lower())) for x in captions)

    said = count(own.words)
    if not own.others:
        return said >= least
    others = count(own.others)
    if min(said, others) > 0 or max(said, others) < 2:
        return None
    return said > 0


def likely_places(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    classes: Float[np.ndarray, "1000"],
    lower_classes: Float[np.ndarray, "1000"],
    objects: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The places of a photo, the ones of the lowest rank and most probable first.

    Args:
        image, extent: As in `keras_caption.apps.objects.object_colours.pixel_shares`.
        classes: float `(1000,)`, probabilities of ImageNet's classes in the whole
            photo.
        lower_classes: float `(1000,)`, the same in its lower half.
        objects: Sequence of dict of `category` and `score`.

    Returns:
        List of dict of `name`, one of `PLACES`; `phrase`, str; and `probability`.
    """
    values = values_of(image, extent, classes, lower_classes, objects)
    found = [
        {
            "name": name,
            "phrase": PLACES[name].phrase,
            "probability": round(
                probability_of(name, values[: PLACES[name].inputs]), 4
            ),
        }
        for name in (row.word for row in details() if row.kind == PLACE)
    ]
    return sorted(found, key=lambda x: (PLACES[x["name"]].rank, -x["probability"]))


def values_of(
    image: Float32[np.ndarray, "size size 3"],
    extent: Float32[np.ndarray, "2"],
    classes: Float[np.ndarray, "1000"],
    lower_classes: Float[np.ndarray, "1000"],
    objects: Sequence[Mapping[str, Any]],
) -> Float[np.ndarray, "2128"]:
    """What tells the places of a photo.

    Args:
        image, extent, classes, lower_classes, objects: As in `likely_places`.
    """
    colours = colours_of_bands(image, extent)
    scores = scores_of(objects)
    return np.concatenate(
        [class_logits(classes), colours, scores, class_logits(lower_classes)]
    )


def scores_of(objects: Sequence[Mapping[str, Any]]) -> Float32[np.ndarray, "80"]:
    """The greatest score of each of COCO's categories, 0 of one that is not there."""
    scores = np.zeros(len(CATEGORIES), "float32")
    for found in objects:
        row = CATEGORIES.index(found["category"])
        scores[row] = max(scores[row], found["score"])
    return scores


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
