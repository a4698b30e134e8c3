"""What a caption claims about a scene, and whether it is so."""

import dataclasses

from keras_caption.data.scenes.language import (
    NUMBERS,
    RELATION_PHRASES,
    SIZE_WORDS,
    plural,
)
from keras_caption.data.scenes.relations import RELATIONS, place, size_word
from keras_caption.data.scenes.scene import COLOURS, KINDS, SceneObject
from keras_caption.text import split_words

CATEGORIES = ("objects", "colours", "sizes", "counts", "relations")
PLACES = ("middle", "top left", "top right", "bottom left", "bottom right")

_KIND_OF = {kind: kind for kind in KINDS} | {plural(kind): kind for kind in KINDS}
_KIND_OF["object"] = None  # of any kind
_SIZE_OF = {word: size for size, words in SIZE_WORDS.items() for word in words}
_RELATION_OF = {
    tuple(phrase.split()): relation
    for relation, phrases in RELATION_PHRASES.items()
    for phrase in phrases
}
_PLACE_OF = {("in", "the", *where.split()): where for where in PLACES}


@dataclasses.dataclass
class Mention:
    """Something that a caption speaks of."""

    kind: str | None = None
    colour: str | None = None
    size: str | None = None
    number: int | None = None
    said_colour: str | None = None  # "the only star is red": not part of the name

    def means(self, o):
        return (
            self.kind in (None, o.kind)
            and self.colour in (None, o.colour)
            and self.size in (None, size_word(o))
        )


def judge(caption, objects):
    """The statements of a caption, each with its truth.

    A caption states that there are objects of the kinds it names, that one of a
    kind has the colour or size it says, how many of a kind there are ("two
    stars", "the only star"), how objects relate to each other, which one is the
    largest and where in the picture one is ("relations"). A relation is true if
    it holds between two objects that fit the whole of their descriptions. Words
    that make no sense are passed over.

    Args:
        caption: str.
        objects: The scene's `SceneObject`s.

    Returns:
        A list of pairs of a category, one of `CATEGORIES`, and a bool.
    """
    mentions, claims = _read(split_words(caption))
    statements = []
    for mention in mentions:
        of_kind = [o for o in objects if mention.kind in (None, o.kind)]
        if mention.kind is not None:
            statements.append(("objects", bool(of_kind)))
        colour = mention.colour or mention.said_colour
        if colour is not None:
            same = any(o.colour == colour for o in of_kind)
            statements.append(("colours", same))
        if mention.size is not None:
            same = any(size_word(o) == mention.size for o in of_kind)
            statements.append(("sizes", same))
        if mention.number is not None:
            count = sum(mention.means(o) for o in objects)
            statements.append(("counts", count == mention.number))
    for holds, *involved in claims:
        statements.append(("relations", _is_true(holds, involved, objects)))
    return statements


def scene_objects(example):
    """The `SceneObject`s of an example of `Scenes`, read back as NumPy."""
    kinds, colours = example["objects"]["kind"], example["objects"]["colour"]
    return [
        SceneObject(KINDS[kind], list(COLOURS)[colour], tuple(map(float, box)))
        for kind, colour, box in zip(kinds, colours, example["boxes"], strict=True)
    ]


def _is_true(holds, involved, objects):
    if len(involved) == 1:
        return any(holds(o, objects) for o in objects if involved[0].means(o))
    a, b = involved
    return any(
        holds(x, y)
        for x in objects
        for y in objects
        if x is not y and a.means(x) and b.means(y)
    )


def _is_largest(o, objects):
    return o.area == max(other.area for other in objects)


def _is_at(where):
    return lambda o, objects: place(o) == where


def _read(words):
    """The mentions of a caption, and its claims: a predicate and its mentions."""
    mentions, claims = [], []
    relation = None  # (predicate, subject), waiting for its object
    largest = False  # waiting for what it is said of
    current = Mention()
    i = 0
    while i < len(words):
        word, after = words[i], i + 1
        phrase = _longest(words, i, _RELATION_OF)
        where = _longest(words, i, _PLACE_OF)
        if phrase and mentions:
            subject = mentions[0] if words[i - 1] == "and" else mentions[-1]
            relation = (RELATIONS[_RELATION_OF[phrase]], subject)
            after = i + len(phrase)
        elif where and mentions:
            claims.append((_is_at(_PLACE_OF[where]), mentions[-1]))
            after = i + len(where)
        elif words[i : i + 3] == ["the", "largest", "object"]:
            if mentions:
                claims.append((_is_largest, mentions[-1]))
            largest = not mentions
            after = i + 3
        elif word in NUMBERS:
            current.number = NUMBERS[word]
        elif word == "only":
            current.number = 1
        elif word in _SIZE_OF:
            current.size = _SIZE_OF[word]
        elif word in COLOURS:
            current.colour = word
            if mentions and words[i - 1] == "is" and words[after : after + 1] == []:
                mentions[-1].said_colour, current = word, Mention()
        elif word in _KIND_OF:
            current.kind = _KIND_OF[word]
            mentions.append(current)
            if relation:
                claims.append((*relation, current))
                relation = None
            if largest:
                claims.append((_is_largest, current))
                largest = False
            current = Mention()
        i = after
    return mentions, claims


def _longest(words, start, phrases):
    """The longest of `phrases` that stands at `start`, or `None`."""
    for length in (4, 3, 2, 1):
        if tuple(words[start : start + length]) in phrases:
            return tuple(words[start : start + length])
    return None


def statement_accuracy(captions, examples):
    """Which share of the statements of captions is true of their scenes.

    Args:
        captions: dict from image id to str.
        examples: tf.data dataset of examples of `Scenes`.

    Returns:
        dict from each of `CATEGORIES`, and `"all"`, to a pair: the share that is
        true, and the number of statements.
    """
    outcomes = {category: [] for category in CATEGORIES}
    for example in examples.as_numpy_iterator():
        caption = captions.get(int(example["image_id"]))
        if caption is not None:
            for category, true in judge(caption, scene_objects(example)):
                outcomes[category].append(true)
    outcomes["all"] = [true for of_one in outcomes.values() for true in of_one]
    return {
        category: (sum(truths) / len(truths) if truths else 0.0, len(truths))
        for category, truths in outcomes.items()
    }
