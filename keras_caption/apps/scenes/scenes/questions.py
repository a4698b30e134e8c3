"""Questions about scenes from a small grammar, each with its one true answer."""

import itertools
import math
import operator
from collections.abc import Sequence

import numpy as np

from keras_caption.apps.scenes.choice import choose
from keras_caption.apps.scenes.scenes.language import RELATION_PHRASES, article, plural
from keras_caption.apps.scenes.scenes.relations import (
    above,
    inside,
    larger_than,
    left_of,
)
from keras_caption.apps.scenes.scenes.scene import COLOURS, KINDS, SceneObject

# Number of attempts to ask a question of a kind about an image; no question is asked
# twice. Yes and no each answer less than 20 % of all questions.
QUESTIONS = {
    "what": 4,
    "colour": 4,
    "furthest": 4,
    "how many": 4,
    "is there": 3,
    "nearest": 8,
    "left": 6,
    "right": 6,
    "above": 6,
    "below": 6,
    "larger": 4,
    "between": 3,
}
# First epochs of kinds that are not asked in epoch 0. If all kinds are asked at once,
# hard kinds are noise in the gradients of easy ones: sides stay near chance.
CURRICULUM = {
    "nearest": 1,
    "how many": 2,
    "is there": 2,
    "left": 3,
    "right": 3,
    "above": 3,
    "below": 3,
    "larger": 3,
    "between": 3,
}
OPPOSITES = {"left": "right", "right": "left", "above": "below", "below": "above"}
FURTHER = {"left": "left", "right": "right", "above": "up", "below": "down"}
# Functions that return whether a is on a side of b.
SIDES = {
    "left": left_of,
    "right": lambda a, b: left_of(b, a),
    "above": above,
    "below": lambda a, b: above(b, a),
}


def ask(
    objects: Sequence[SceneObject], rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    """Asks questions about a scene, each of which has one answer.

    An object is named by its kind, or by its colour and kind, if that is unique. In a
    question about two objects, both answers (yes or no, either side, or either kind)
    are equally probable, and swapping the objects swaps the answers: a model that knows
    neither position nor size answers half of them correctly.

    Args:
        objects: Sequence of `SceneObject`.
        rng: `numpy.random.Generator`, for the choice of objects and words.

    Returns:
        A list of tuples of the kind, one of `QUESTIONS`, the question and the answer,
        all str.
    """
    asked: dict[str, tuple[str, str, str]] = {}
    for kind, count in QUESTIONS.items():
        for _ in range(count):
            form = FORMS.get(kind, _side)
            pair = form(kind, objects, rng)
            if pair is not None:
                question, answer = pair
                asked.setdefault(question, (kind, question, answer))
    return list(asked.values())


BY_KIND, BY_COLOUR = operator.attrgetter("kind"), operator.attrgetter("colour")
BY_BOTH = operator.attrgetter("colour", "kind")


def _is_only(o, objects, by):
    """Returns whether no other object has the same kind or colour, by `by`."""
    return [by(other) for other in objects].count(by(o)) == 1


def _name(o, objects, rng):
    """Returns a unique description, such as `"the red star"`, or `None`."""
    names = []
    if _is_only(o, objects, BY_KIND):
        names.append(f"the {o.kind}")
    if _is_only(o, objects, BY_BOTH):
        names.append(f"the {o.colour} {o.kind}")
    return choose(rng, names) if names else None


def _named(objects, rng):
    """Returns pairs of an object with a unique name, and its name."""
    named = ((o, _name(o, objects, rng)) for o in objects)
    return [(o, name) for o, name in named if name is not None]


def _what(kind, objects, rng):
    only = [o for o in objects if _is_only(o, objects, BY_COLOUR)]
    if not only:
        return None
    o = choose(rng, only)
    form = choose(rng, ["what is the {} object?", "what kind is the {} object?"])
    return form.format(o.colour), o.kind


def _colour(kind, objects, rng):
    only = [o for o in objects if _is_only(o, objects, BY_KIND)]
    if not only:
        return None
    o = choose(rng, only)
    form = choose(rng, ["what colour is the {}?", "what is the colour of the {}?"])
    return form.format(o.kind), o.colour


def _how_many(kind, objects, rng):
    groups = {"objects": len(objects)}
    for name in KINDS:
        groups[plural(name)] = sum(o.kind == name for o in objects)
    for colour in COLOURS:
        groups[f"{colour} objects"] = sum(o.colour == colour for o in objects)
    count = choose(rng, sorted(set(groups.values())))
    group = choose(rng, [name for name, n in groups.items() if n == count])
    form = choose(rng, ["how many {} are there?", "what is the number of {}?"])
    return form.format(group), str(count)


def _is_there(kind, objects, rng):
    present = sorted({BY_BOTH(o) for o in objects})
    # Absent pairs combine a colour and a kind that exist: neither reveals the answer.
    colours, names = (sorted(set(x)) for x in zip(*present, strict=True))
    absent = [pair for pair in itertools.product(colours, names) if pair not in present]
    if not absent:
        return None
    is_there = bool(rng.integers(2))
    colour, name = choose(rng, present if is_there else absent)
    question = f"is there {article(colour)} {colour} {name}?"
    return question, "yes" if is_there else "no"


def _furthest(kind, objects, rng):
    direction = choose(rng, [*DIRECTIONS])
    place = DIRECTIONS[direction]
    first, *others = sorted(objects, key=place)
    if not others or place(others[0]) - place(first) < CLEARLY:
        return None
    return f"which object is furthest {direction}?", first.kind


def _nearest(kind, objects, rng):
    named = _named(objects, rng)
    if not named:
        return None
    a, name = choose(rng, named)
    side = choose(rng, [*SIDES])
    others = [o for o in objects if o is not a]

    def distance(o):
        return math.dist(o.centre, a.centre)

    near = sorted((o for o in others if _is_towards(side, o, a)), key=distance)
    # Some other objects must be on another side, so that the side matters.
    if not 0 < len(near) < len(others) or not SIDES[side](near[0], a):
        return None
    if len(near) > 1 and distance(near[1]) < FARTHER * distance(near[0]):
        return None
    return f"what is the nearest object {PHRASE_OF[side]} {name}?", near[0].kind


def _is_towards(side, o, a):
    """Returns whether o is on a side of a rather than on another, at any distance."""
    dx, dy = np.subtract(o.centre, a.centre)
    along, across = (dx, dy) if side in ("left", "right") else (dy, dx)
    return abs(along) > abs(across) and (along < 0) == (side in ("left", "above"))


def _side(side, objects, rng):
    """Asks about a side, in one of three forms.

    `"is the star left of the heart?"`, `"is the star left or right of the heart?"` or
    `"which is further left, the star or the heart?"`.
    """
    pair = _pair(objects, SIDES[side], rng)
    if pair is None:
        return None
    form = rng.integers(3)
    if form == 0:
        return _yes_or_no(PHRASE_OF[side], *pair, rng)
    if form == 1:
        return _which(f"further {FURTHER[side]}", *pair)
    a, b, holds = pair
    opposite, end = OPPOSITES[side], " of" if side in ("left", "right") else ""
    question = f"is {a} {side} or {opposite}{end} {b}?"
    return question, side if holds else opposite


def _larger(kind, objects, rng):
    pair = _pair(objects, larger_than, rng)
    if pair is None:
        return None
    if rng.integers(2):
        return _yes_or_no("larger than", *pair, rng)
    return _which("larger", *pair)


def _yes_or_no(relation, a, b, holds, rng):
    phrase = choose(rng, RELATION_PHRASES[relation])
    return f"is {a} {phrase} {b}?", "yes" if holds else "no"


def _which(relation, a, b, holds):
    """Asks which of two objects it is; returns `None` if both have the same kind."""
    kinds = [name.split()[-1] for name in (a, b)]
    if kinds[0] == kinds[1]:
        return None
    return f"which is {relation}, {a} or {b}?", kinds[0 if holds else 1]


def _pair(objects, holds, rng):
    """Chooses two named objects, and whether a relation or its inverse holds.

    Returns the names and a bool, or `None` if there are no such objects.
    """
    named = _named(objects, rng)
    pairs = [
        (name, other)
        for a, name in named
        for b, other in named
        if a is not b and holds(a, b)
    ]
    if not pairs:
        return None
    a, b = choose(rng, pairs)
    return (a, b, True) if rng.integers(2) else (b, a, False)


def _between(kind, objects, rng):
    named = _named(objects, rng)
    triples = []
    for i, (a, name) in enumerate(named):
        for b, other in named[:i]:
            between = [o for o in objects if may_be_between(o, a, b)]
            if len(between) == 1 and is_between(between[0], a, b):
                triples.append((name, other, between[0].kind))
    if not triples:
        return None
    a, b, answer = choose(rng, triples)
    start = choose(rng, ["which object is", "what is"])
    return f"{start} between {a} and {b}?", answer


def is_between(o: SceneObject, a: SceneObject, b: SceneObject) -> bool:
    """Returns whether an object is clearly between two others."""
    along, beside = _position(o, a, b)
    return 0.2 < along < 0.8 and beside < 0.1 and may_be_between(o, a, b)


def may_be_between(o: SceneObject, a: SceneObject, b: SceneObject) -> bool:
    """Returns whether an object may be said to be between two others."""
    if o in (a, b) or inside(a, b) or inside(b, a):
        return False
    along, beside = _position(o, a, b)
    return 0.0 < along < 1.0 and beside < 0.2


def _position(o, a, b):
    """Returns the position of o on the way from a to b, and its distance from it."""
    (x, y), (x1, y1), (x2, y2) = o.centre, a.centre, b.centre
    dx, dy = x2 - x1, y2 - y1
    length = math.hypot(dx, dy) or 1e-9
    along = ((x - x1) * dx + (y - y1) * dy) / length**2
    beside = abs((x - x1) * dy - (y - y1) * dx) / length
    return along, beside


# Functions that grow with an object's distance from the border in a direction.
DIRECTIONS = {
    "left": lambda o: o.centre[0],
    "right": lambda o: -o.centre[0],
    "up": lambda o: o.centre[1],
    "down": lambda o: -o.centre[1],
}
CLEARLY = 0.05  # a difference of places, in sides of the image
FARTHER = 1.2  # a clear ratio of distances
PHRASE_OF = {"left": "left of", "right": "right of", "above": "above", "below": "below"}
FORMS = {
    "what": _what,
    "colour": _colour,
    "how many": _how_many,
    "is there": _is_there,
    "furthest": _furthest,
    "nearest": _nearest,
    "larger": _larger,
    "between": _between,
}
