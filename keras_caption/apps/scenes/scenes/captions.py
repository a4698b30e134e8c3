import math
from collections.abc import Sequence

import numpy as np

from keras_caption.apps.scenes.choice import choose
from keras_caption.apps.scenes.scenes.language import (
    NUMBERS,
    RELATION_PHRASES,
    SIZE_WORDS,
    article,
    plural,
)
from keras_caption.apps.scenes.scenes.relations import RELATIONS, place, size_word
from keras_caption.apps.scenes.scenes.scene import SceneObject


def describe(objects: Sequence[SceneObject], rng: np.random.Generator) -> list[str]:
    """Writes five captions of a scene.

    They describe salient objects, which are large or the only ones of their kind or
    colour, and their relations:

    1. the relation of the most salient object to the second;
    2. the same relation, from the second to the first;
    3. the number of objects of the most common kind, or the only object of its kind;
    4. the place of the most salient object in the image, and its relation to the
       third;
    5. an object that is far from it, larger or smaller, or the largest object.

    Args:
        objects: Sequence of `SceneObject`.
        rng: `numpy.random.Generator`, for the choice of words.

    Returns:
        A list of five str.
    """
    first, *rest = sorted(objects, key=lambda o: -_salience(o, objects))
    pairs = [(first, other) for other in rest]
    return [
        _relation_caption(pairs, rng),
        _relation_caption([(b, a) for a, b in pairs], rng),
        _count_caption(first, objects, rng),
        _place_caption(first, rest, rng),
        _comparison_caption(first, objects, rng),
    ]


def _salience(o, objects):
    same_kind = sum(other.kind == o.kind for other in objects)
    same_colour = sum(other.colour == o.colour for other in objects)
    return math.sqrt(o.area) + 0.15 * (same_kind == 1) + 0.1 * (same_colour == 1)


def _name(o, rng):
    """Names an object, as in `"a large red star"`."""
    words = [o.colour, o.kind]
    if size_word(o):
        words.insert(0, str(rng.choice(SIZE_WORDS[size_word(o)])))
    return " ".join([article(words[0]), *words])


def _phrase(relation, rng):
    return str(rng.choice(RELATION_PHRASES[relation]))


def _relation(a, b):
    """The most informative relation of a to b, or `None`."""
    return next((name for name, holds in RELATIONS.items() if holds(a, b)), None)


def _relation_caption(pairs, rng):
    """Describes the relation of the first pair that has one."""
    a, b = next((pair for pair in pairs if _relation(*pair)), (pairs[0][0], None))
    if b is None:
        return f"there is {_name(a, rng)}"
    form = rng.choice(["{} is {} {}", "there is {} {} {}"])
    return form.format(_name(a, rng), _phrase(_relation(a, b), rng), _name(b, rng))


def _count_caption(o, objects, rng):
    kinds = [other.kind for other in objects]
    commonest = max(kinds, key=lambda kind: (kinds.count(kind), kind))
    count = kinds.count(commonest)
    if count > 1:
        number = next(word for word, n in NUMBERS.items() if n == count)
        group = f"{number} {plural(commonest)}"
        rest = [other for other in objects if other.kind != commonest]
        if rest:
            group += f" and {_name(max(rest, key=lambda r: r.area), rng)}"
        form = rng.choice(["there are {}", "{}", "a picture of {}"])
        return form.format(group)
    form = rng.choice(["the only {} is {}", "there is only one {} and it is {}"])
    return form.format(o.kind, o.colour)


def _place_caption(o, rest, rng):
    where = place(o)
    start = _name(o, rng)
    if where is not None:
        start += f" in the {where}"
    for other in rest[1:] + rest[:1]:
        relation = _relation(o, other)
        if relation is not None:
            joint = " and" if where is not None else " is"
            return f"{start}{joint} {_phrase(relation, rng)} {_name(other, rng)}"
    return start


def _comparison_caption(o, objects, rng):
    pairs = [
        (relation, other)
        for relation in ("far from", "larger than", "smaller than")
        for other in objects
        if other is not o and RELATIONS[relation](o, other)
    ]
    if pairs and rng.random() < 0.5:
        relation, other = choose(rng, pairs)
        return f"{_name(o, rng)} is {_phrase(relation, rng)} {_name(other, rng)}"
    largest = max(objects, key=lambda other: other.area)
    return f"the largest object is {_name(largest, rng)}"
