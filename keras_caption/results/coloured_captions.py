"""Colours of detected objects, added to the nouns of a caption."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_caption.evaluation.named_colours import COLOUR
from keras_caption.features import COLOURS
from keras_caption.features.object_words import PATTERN, category_of

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
SURE = 0.5  # chosen on photos, see docs/results/photos.md


# Words that a noun, or its colour, comes right after.
FIRST = "an?|the|two|three|four|some|several|many|of|and|with"
NOUN = re.compile(
    rf"\b(?P<first>{FIRST}) (?P<guess>(?:(?:{COLOUR}) and )?(?:{COLOUR}) )?"
    rf"(?P<noun>{PATTERN.pattern})"
)


def with_colours(
    caption: str, objects: Sequence[tuple[str, Any]], sure: float = SURE
) -> str:
    """Gives nouns of a caption the colours of their objects, where they are sure.

    Of a category, all detected objects must have one colour. Its probability is
    proportional to the colour's share in the middle of the box, times the square root
    of how often people say it of the category: a dog that looks grey is hardly called
    so. Colours that a captioner of categories and boxes gave a noun are guesses, and
    go.

    Args:
        caption: str, in lower case.
        objects: Sequence of the category and the shares of each object, float
            `(32,)`, see `keras_caption.features.colours_of`.
        sure: float in [0, 1], least probability of a colour.
    """
    said = set()

    def coloured(match):
        category = category_of(match["noun"])
        colours = [likely_colour(of, x) for of, x in objects if of == category]
        names = {name for name, probability in colours if probability >= sure}
        words = [match["noun"]]
        is_sure = len(names) == 1 and all(p >= sure for _, p in colours)
        if is_sure and category not in said:
            words = [*names, *words]
            said.add(category)
        first = match["first"]
        if first in ("a", "an"):
            first = "an" if words[0][0] in "aeiou" else "a"
        return " ".join([first, *words])

    return NOUN.sub(coloured, caption)


def likely_colour(category: str, shares: Any) -> tuple[str, float]:
    """The colour that people are likeliest to call an object, and its probability.

    Args:
        category: str. Of those not in `SAID`, nothing is likely.
        shares: float `(32,)`, of `COLOURS` in the middle of the box first.
    """
    if category not in SAID:
        return "", 0.0
    said, weights = SAID[category], np.zeros(len(WORDS))
    for colour, share in zip(COLOURS, shares, strict=False):
        weights[WORDS.index(WORD.get(colour, colour))] += share
    for i, of_all in enumerate(OF_ALL):
        prior = said[i] + SMOOTHING * of_all / sum(OF_ALL)
        weights[i] *= math.sqrt(prior)
    best = int(weights.argmax())
    return WORDS[best], float(weights[best] / weights.sum())
