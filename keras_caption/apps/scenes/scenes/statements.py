"""Finds and judges the statements of a caption about a scene."""

import dataclasses
from collections.abc import Container, Sequence
from typing import Any

from keras_caption.apps.scenes.counting import count_statements
from keras_caption.apps.scenes.scenes.language import (
    NUMBERS,
    RELATION_PHRASES,
    SIZE_WORDS,
    plural,
)
from keras_caption.apps.scenes.scenes.relations import RELATIONS, place, size_word
from keras_caption.apps.scenes.scenes.scene import COLOURS, KINDS, SceneObject
from keras_caption.text import split_words

CATEGORIES = ("objects", "colours", "sizes", "counts", "relations")
SCENE_PLACES = ("middle", "top left", "top right", "bottom left", "bottom right")

# Meanings of words and phrases.
KIND_OF: dict[str, str | None] = {
    **{kind: kind for kind in KINDS},
    **{plural(kind): kind for kind in KINDS},
    "object": None,  # any kind
}
SIZE_OF = {word: size for size, words in SIZE_WORDS.items() for word in words}
RELATION_OF = {
    tuple(phrase.split()): relation
    for relation, phrases in RELATION_PHRASES.items()
    for phrase in phrases
}
PLACE_OF = {("in", "the", *where.split()): where for where in SCENE_PLACES}


@dataclasses.dataclass
class Mention:
    """An object, or several of a kind, that a caption mentions."""

    kind: str | None = None
    colour: str | None = None
    size: str | None = None
    number: int | None = None
    stated_colour: str | None = None  # a predicate, as in "the only star is red"

    def matches(self, o: SceneObject) -> bool:
        """Whether an object fits the description."""
        return (
            self.kind in (None, o.kind)
            and self.colour in (None, o.colour)
            and self.size in (None, size_word(o))
        )


def judge(caption: str, objects: Sequence[SceneObject]) -> list[tuple[str, bool]]:
    """Judges every statement of a caption.

    Statements are: objects of a kind exist; an object of a kind has a colour or a size;
    the number of objects of a kind ("two stars", "the only star"); and relations, which
    are those between two objects, which object is the largest, and its place in the
    image. A relation is true if it holds for objects that match their whole
    descriptions. Words without a meaning are ignored.

    Args:
        caption: str.
        objects: Sequence of `SceneObject`, the scene.

    Returns:
        A list of pairs of a category, one of `CATEGORIES`, and a bool, whether the
        statement is true.
    """
    mentions, claims = _read(split_words(caption))
    statements = []
    for mention in mentions:
        same_kind = [o for o in objects if mention.kind in (None, o.kind)]
        if mention.kind is not None:
            statements.append(("objects", bool(same_kind)))
        colour = mention.colour or mention.stated_colour
        if colour is not None:
            true = any(o.colour == colour for o in same_kind)
            statements.append(("colours", true))
        if mention.size is not None:
            true = any(size_word(o) == mention.size for o in same_kind)
            statements.append(("sizes", true))
        if mention.number is not None:
            count = sum(mention.matches(o) for o in objects)
            statements.append(("counts", count == mention.number))
    for holds, *involved in claims:
        statements.append(("relations", _is_true(holds, involved, objects)))
    return statements


def scene_objects(example: dict[str, Any]) -> list[SceneObject]:
    """Converts an example of `Scenes` in NumPy to its `SceneObject`s."""
    kinds, colours = example["objects"]["kind"], example["objects"]["colour"]
    return [
        SceneObject(KINDS[kind], list(COLOURS)[colour], (x1, y1, x2, y2))
        for kind, colour, (x1, y1, x2, y2) in zip(
            kinds, colours, example["boxes"].tolist(), strict=True
        )
    ]


def _is_true(holds, involved, objects):
    if len(involved) == 1:
        return any(holds(o, objects) for o in objects if involved[0].matches(o))
    a, b = involved
    return any(
        holds(x, y)
        for x in objects
        for y in objects
        if x is not y and a.matches(x) and b.matches(y)
    )


def is_largest(o, objects):
    return o.area == max(other.area for other in objects)


def _is_at(where):
    return lambda o, objects: place(o) == where


def _read(words):
    """Reads the mentions of a caption, and its claims: predicates with mentions."""
    mentions, claims = [], []
    relation = None  # a predicate and its subject; the object follows
    largest = False  # whether "the largest object" precedes its mention
    current = Mention()
    i = 0
    while i < len(words):
        word, after = words[i], i + 1
        phrase = longest_phrase(words, i, RELATION_OF)
        where = longest_phrase(words, i, PLACE_OF)
        if phrase and mentions:
            subject = mentions[0] if words[i - 1] == "and" else mentions[-1]
            relation = (RELATIONS[RELATION_OF[phrase]], subject)
            after = i + len(phrase)
        elif where and mentions:
            claims.append((_is_at(PLACE_OF[where]), mentions[-1]))
            after = i + len(where)
        elif words[i : i + 3] == ["the", "largest", "object"]:
            if mentions:
                claims.append((is_largest, mentions[-1]))
            largest = not mentions
            after = i + 3
        elif word in NUMBERS:
            current.number = NUMBERS[word]
        elif word == "only":
            current.number = 1
        elif word in SIZE_OF:
            current.size = SIZE_OF[word]
        elif word in COLOURS:
            current.colour = word
            if mentions and words[i - 1] == "is" and words[after : after + 1] == []:
                mentions[-1].stated_colour, current = word, Mention()
        elif word in KIND_OF:
            current.kind = KIND_OF[word]
            mentions.append(current)
            if relation:
                claims.append((*relation, current))
                relation = None
            if largest:
                claims.append((is_largest, current))
                largest = False
            current = Mention()
        i = after
    return mentions, claims


def longest_phrase(
    words: Sequence[str], start: int, phrases: Container[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Finds the longest of `phrases`, of up to four words, that begins at `start`."""
    for length in (4, 3, 2, 1):
        if tuple(words[start : start + length]) in phrases:
            return tuple(words[start : start + length])
    return None


def statement_accuracy(
    captions: dict[int, str], examples: Any
) -> dict[str, tuple[float, int]]:
    """Computes the share of the statements of captions that are true.

    Args:
        captions: dict from image id to str.
        examples: `tf.data.Dataset` of examples of `Scenes`.

    Returns:
        dict from each of `CATEGORIES`, and `"all"`, to a pair: the share of true
        statements, and the number of statements.
    """
    return count_statements(
        captions,
        examples,
        CATEGORIES,
        lambda caption, example: judge(caption, scene_objects(example)),
    )
