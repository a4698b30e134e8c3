"""What persons and animals do, where a box beside another does not tell it.

A person whose box is above a horse's may ride the horse or stand behind it. Logistic
regressions, see `keras_caption.apps.objects.details`, tell these by ImageNet's classes
of the box, the scores of all detected objects and, of what is ridden, the classes of
its box.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from keras_caption.apps.objects.box_contact import above, corners_of, touching
from keras_caption.apps.objects.details import (
    ACTION,
    admits,
    class_logits,
    probability_of,
)
from keras_caption.apps.objects.person_names import PERSON
from keras_caption.apps.objects.places import scores_of

SITTING, RIDING, STANDING = "sitting", "riding", "standing"
ANIMAL = "animal"  # of rows of the table
ANIMALS = ("horse", "sheep", "cow", "elephant", "zebra", "giraffe")
SEATS = ("chair", "couch", "bench", "bed")
TABLE = "dining table"
RIDDEN = (
    *("bicycle", "motorcycle", "horse", "elephant"),
    *("skis", "snowboard", "skateboard", "surfboard"),
)


class Action(NamedTuple):
    """What is surely done in a photo.

    Attributes:
        name: str, `"sitting"`, `"riding"` or `"standing"`.
        of: str, the category of those who do it, of whom all are sure.
        object: str, the category of what it is done with; empty if it is done with
            nothing, or whatever it is done with.
        probability: float, the least one of them.
    """

    name: str
    of: str
    object: str
    probability: float


class Candidate(NamedTuple):
    """Objects that may do something.

    Attributes:
        name, of, object: As in `Action`.
        places: list of pairs of int, the places of one who may do it and of what it may
            be done with, or, if that is nothing, of the first again.
    """

    name: str
    of: str
    object: str
    places: list[tuple[int, int]]


def likely_actions(
    objects: Sequence[Mapping[str, Any]], box_classes: Float[np.ndarray, "N 1000"]
) -> list[Action]:
    """What is surely done in a photo.

    Args:
        objects: Sequence of dict of `category`, `score` and `box`.
        box_classes: float `(N, 1000)`, probabilities of ImageNet's classes in the boxes
            of objects; 0 of those that were not classified, which count for nothing.
    """
    sure = []
    for name, of, category, places in candidates(objects):
        rows = values_of(name, objects, box_classes, places)
        if not len(rows):
            continue
        least = min(probability_of(name, row) for row in rows)
        if admits(ACTION, name, least, of if of == PERSON else ANIMAL):
            sure.append(Action(name, of, category, round(least, 4)))
    return sure


def candidates(objects: Sequence[Mapping[str, Any]]) -> list[Candidate]:
    """What may be done in a photo, by categories and boxes.

    Persons may sit on a seat or ride something that their boxes are above, and sit at a
    table that these touch; all persons may sit, and all animals stand.

    Args:
        objects: As in `likely_actions`.
    """
    boxes = [corners_of(x["box"]) for x in objects]
    at: dict[str, list[int]] = collections.defaultdict(list)
    for i, x in enumerate(objects):
        at[x["category"]].append(i)

    def pairs(holds, category):
        others = at[category]
        return [(i, j) for i in at[PERSON] for j in others if holds(boxes[i], boxes[j])]

    found = [
        *(Candidate(SITTING, PERSON, x, pairs(above, x)) for x in SEATS),
        Candidate(SITTING, PERSON, TABLE, pairs(touching, TABLE)),
        Candidate(SITTING, PERSON, "", [(i, i) for i in at[PERSON]]),
        *(Candidate(RIDING, PERSON, x, pairs(above, x)) for x in RIDDEN),
        *(Candidate(STANDING, x, "", [(i, i) for i in at[x]]) for x in ANIMALS),
    ]
    return [x for x in found if x.places]


def values_of(
    name: str,
    objects: Sequence[Mapping[str, Any]],
    box_classes: Float[np.ndarray, "N 1000"],
    places: Sequence[tuple[int, int]],
) -> Float[np.ndarray, "rows values"]:
    """What tells whether objects do something.

    Args:
        name: As in `Action`.
        objects, box_classes: As in `likely_actions`.
        places: As in `Candidate`.

    Returns:
        float `(rows, 1080)`, or `(rows, 2080)` of riding, a row for each pair of
        objects that were classified.
    """
    scores = scores_of(objects)
    rows = []
    for pair in places:
        own = [box_classes[i] for i in (pair if name == RIDING else pair[:1])]
        if all(np.any(x) for x in own):
            rows.append(np.concatenate([*map(class_logits, own), scores]))
    return np.array(rows, "float32")
