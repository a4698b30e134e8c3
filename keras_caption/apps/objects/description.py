"""Captions that say more: finer names, colours, places and things that were measured.

A caption of detected objects names categories. Here words are inserted that something
else measured, and every content word is linked to what admits it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_caption.apps.objects.actions import Action
from keras_caption.apps.objects.box_contact import above, corners_of
from keras_caption.apps.objects.evidence_table import implied_words
from keras_caption.apps.objects.object_words import (
    NOUN,
    PATTERN,
    PLURALS,
    category_of,
    mentions,
)
from keras_caption.apps.objects.person_names import PERSON, PERSON_NAMES
from keras_caption.apps.objects.place_words import PLACE_WORDS
from keras_caption.apps.objects.places import EVERYWHERE, ON_TABLES, PLACES
from keras_caption.apps.objects.suppression import Suppression
from keras_caption.apps.objects.sure_actions import (
    probability_of_verb,
    with_sure_actions,
)

# Kinds of links.
OBJECT, NAME, COLOUR, RELATION, PLACE, THING = (
    *("object", "name", "colour", "relation", "place", "thing"),
)
Link = dict[str, Any]

# A noun that words may be inserted before: an article or a number comes right before
# it, so that it has no adjective.
NUMBERS = {"a couple of": 2, "two": 2, "three": 3, "four": 4}
# Least score of each of so many objects: of fewer sure ones, the number is often wrong.
SURE = 0.5
MANY_PERSONS = 8  # detected ones, at least, that a bare caption calls many
DETERMINERS = "|".join([*NUMBERS, "a", "an", "the", "some", "several", "many", "of"])
PHRASE = re.compile(
    rf"\b(?P<first>{DETERMINERS}) (?P<noun>{PATTERN.pattern})(?!\S)(?P<verb> is\b)?"
)
# After these, or at the start, a noun is what is there. After others it is the one of
# its kind that something is done with, of however many: "holding a cup".
COUNTED_AFTER = ("", "with", "and")
IRREGULAR = {
    "knife": "knives",
    "mouse": "mice",
    "sheep": "sheep",
    "broccoli": "broccoli",
}
APART = Suppression(0.5, by_category=False)  # boxes of an object that is found twice
_VERBS = """
sitting standing lying flying riding holding wearing playing skiing snowboarding
skateboarding surfing
"""
_PREPOSITIONS = "next with on in at down near beside"
# Words for relations of what stands before and after them.
RELATIONS = frozenset(f"{_VERBS} {_PREPOSITIONS}".split())
_COUNTING = """
a an the two three four some several many group herd bunch couple pair of is are to each
other top and
"""
# Words of captions that name nothing. One of them, or the end, follows the noun: in "a
# dog house" the noun is another.
FUNCTION = RELATIONS | frozenset(_COUNTING.split())
VERBS = {"is", "are"}  # of a sentence
UNCOUNTED = {"broccoli"}
# Words after which a place has been said, or would be said of the wrong thing: "a dog
# on a couch on grass".
LOCATED = {"on", "in", "at", "down", "near", "beside", "flying", "of"}
# "of" is one but in these.
COUNTED = re.compile(r"\ba (?:group|herd|bunch|couple|pair) of\b")
OF_FOOD = re.compile(r"\bof food\b")  # is no place
NAMED_PLACES = {*implied_words(), *(word for x in PLACE_WORDS for word in x)}
# A caption that names no more than one kind of object, to which a thing may be added.
BARE = re.compile(rf"(?:{COUNTED.pattern} |(?:{DETERMINERS}) )(?:{PATTERN.pattern})")
# A table that a caption names before what is on it.
ON_TOP = re.compile(r"(?P<under>a (?:dining )?table) with (?P<above>.+)")
ARTICLE = re.compile("^an? ")
PICTURE = "black and white picture"
IS_PLURAL = re.compile("(?<![su])s$")  # such as "sunglasses"
VOWEL = re.compile("(?!uni[^mn]|us[eu]|eu)[aeiou]|hour|heir|honest", re.IGNORECASE)


def describe(
    caption: str,
    objects: Sequence[Mapping[str, Any]],
    places: Sequence[Mapping[str, Any]] = (),
    things: Sequence[Mapping[str, Any]] = (),
    is_black_and_white: bool = False,
    actions: Sequence[Action] | None = None,
) -> tuple[str, list[Link]]:
    """Inserts what was measured of a photo into its caption.

    A noun gets the finer name of its objects, or else their colour, if all objects
    of its category have the same one; a noun that is said twice gets it once, and
    one with an adjective keeps that. A number of objects that are not sure goes:
    "two cats" become "cats". Where two that are sure are there, "a pizza" becomes
    "pizzas". "A group of people" alone, of 8 or more that are detected, becomes "many
    people". "In the water and a boat" becomes "in the water with a boat". A caption of
    one kind of object that has no place gets a thing and a place. "A table with a cup"
    becomes "a cup on a table". "Sitting at a table" becomes "at a table" if it is not
    sure. Words that captions of COCO's objects do not have, such as those of another
    language, stay as they are, and nothing is added to such a caption.

    Args:
        caption: str, in lower case.
        objects: Sequence of dict of `category`, `score` and `box`; and, where known,
            `name` and `name_probability`, or `colour` and `colour_probability`.
        places: Sequence of dict of `name`, one of
            `keras_caption.apps.objects.places.PLACES`; `phrase`, such as "on a
            beach"; and `probability`. The first one counts; general ones, such as
            "outdoors", are of captions that name persons or pets.
        things: Sequence of dict of `name` and `probability`. The first one counts.
        is_black_and_white: bool, whether the photo has no colours. A caption that is no
            sentence begins with that.
        actions: What is surely done, see
            `keras_caption.apps.objects.actions.likely_actions`; `None` if it is unknown
            what is, which changes nothing.

    Returns:
        str, and a list of dict of each content word, in their order: `word`; `start`,
        int, its place in the text; `kind`, `"object"`, `"name"`, `"colour"`,
        `"relation"`, `"place"` or `"thing"`; `probability`, float, the least one of
        what admits the word; and `boxes`, list of the boxes that do. A word of the
        whole photo has no boxes, and a word that nothing is known of no link.
    """
    if actions is not None:
        caption = with_sure_actions(caption, actions)
    others, nouns = PATTERN.subn(" ", caption)
    known = nouns and (FUNCTION | NAMED_PLACES).issuperset(others.split())
    if known:
        caption = _on_top(_counted(_accompanied(caption), objects), objects)
    text = _with_measured(caption, objects)
    insertions = []  # what is before a word, the word, its kind, and what admits it
    if known and not NAMED_PLACES & {*OF_FOOD.sub("", caption).split()}:
        is_bare, named = BARE.fullmatch(caption), {x for _, x in mentions(caption)}
        if things and is_bare and _is_new(things[0]["name"], objects):
            name = things[0]["name"]
            insertions.append((f" and {_before(name)}", name, THING, things[0]))
        is_of_any = named & EVERYWHERE
        places = [x for x in places if is_of_any or not PLACES[x["name"]].is_general]
        places = [x for x in places if named <= (PLACES[x["name"]].of or named)]
        within = OF_FOOD.sub("", COUNTED.sub("", caption))
        if places and not LOCATED & {*within.split()}:
            *first, word = f" {places[0]['phrase']}".split(" ")
            insertions.append((" ".join([*first, ""]), word, PLACE, places[0]))
    added = []
    if is_black_and_white and known and not VERBS & {*caption.split()}:
        added.append(_link(PICTURE, len("a "), COLOUR, [], [1.0]))
        text = f"a {PICTURE} of {text}"
    for before, word, kind, measured in insertions:
        text += before
        added.append(_link(word, len(text), kind, [], [measured["probability"]]))
        text += word
    links = links_of(text, objects, actions or ()) + added
    return text, sorted(links, key=lambda x: x["start"])


def name_of(thing: Mapping[str, Any]) -> tuple[str, list[Link]]:
    """A caption that is the name of one thing alone, and its link.

    Args:
        thing: As in `describe`.
    """
    text = _before(thing["name"]) + thing["name"]
    return named_alone(text, THING, thing["probability"])


def named_alone(text: str, kind: str, probability: float) -> tuple[str, list[Link]]:
    """A caption that names one thing or place of a photo, and its link.

    Args:
        text: str, a name, and its article if it has one.
        kind, probability: As in `describe`.
    """
    name = ARTICLE.sub("", text)
    return text, [_link(name, len(text) - len(name), kind, [], [probability])]


def _before(name):
    """What stands before the name of one thing: an article and a space, or nothing."""
    return "" if IS_PLURAL.search(name) else f"{article(name)} "


def article(words: str) -> str:
    """The indefinite article of words."""
    return "an" if VOWEL.match(words) else "a"


def plural(noun: str) -> str:
    """The plural of a noun."""
    if noun in PERSON_NAMES:
        return PERSON_NAMES[noun].plural
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if re.search("(?:s|x|z|ch|sh)$", noun):
        return f"{noun}es"
    return re.sub("(?<=[^aeiou])y$", "ie", noun) + "s"


def _accompanied(caption):
    """A caption without "and" after a place, as in "in the water and a boat"."""
    before, _, after = caption.partition(" and ")
    relations = [word for word in before.split() if word in RELATIONS]
    is_after_place = relations[-1:] and relations[-1] in ("in", "on", "at")
    if not after or not is_after_place or "with" in after.split():
        return caption
    return f"{before} with {after}"


def _counted(caption, objects):
    """A caption of a group of persons alone says "many" where many are detected."""
    of_persons = {x for _, x in mentions(caption)} == {PERSON}
    count = sum(x["category"] == PERSON for x in objects)
    if of_persons and count >= MANY_PERSONS and BARE.fullmatch(caption):
        return re.sub("^a group of ", "many ", caption)
    return caption


def _on_top(caption, objects):
    """A caption that names what is on a table first: "a table with a cup"."""
    match = ON_TOP.fullmatch(caption)
    if not match or {*match["above"].split()} & (RELATIONS - {"with"}):
        return caption
    named = {x for _, x in mentions(match["above"])}
    tables, boxes = (
        [corners_of(x["box"]) for x in objects if x["category"] in categories]
        for categories in (["dining table"], named)
    )
    on_top = all(any(above(x, table) for table in tables) for x in boxes)
    if not named <= ON_TABLES or not on_top:
        return caption
    return f"{match['above']} on {match['under']}"


def _with_measured(caption, objects):
    """The caption with finer names and colours, and sure numbers, of its objects."""
    said = set()
    named = [category for _, category in mentions(caption)]

    def phrase(match):
        category, words = category_of(match["noun"]), match["noun"]
        of_category = [x for x in objects if x["category"] == category]
        first, verb = f"{match['first']} ", match["verb"] or ""
        if not _is_sure(match["first"], of_category):
            first = ""
        after = match.string[match.end("noun") :].split()[:1]
        if category in said or not FUNCTION.issuperset(after):
            return first + words + verb
        is_plural = words in PLURALS
        if named.count(category) == 1 and _is_of_several(match, of_category):
            is_plural, first, verb = True, "", verb.replace("is", "are")
            words = plural(words)
        name, colour = _common(of_category, "name"), _common(of_category, "colour")
        # "an espresso of coffee" is none.
        if name and after != ["of"]:
            words = plural(name) if is_plural else name
        elif colour:
            words = f"{colour} {words}"
        said.add(category)
        if first in ("a ", "an "):
            first = f"{article(words)} "
        if words in UNCOUNTED:
            first = ""
        if match.string[: match.start()].endswith(" and "):
            verb = verb.replace("is", "are")
        return first + words + verb

    return PHRASE.sub(phrase, caption)


def _is_of_several(match, objects):
    """Whether one is said to be there, and several apart from each other surely are.

    A person may be the one of several who does what is said.
    """
    sure = [x for x in objects if x["score"] >= SURE and x["category"] != PERSON]
    before = ["", *match.string[: match.start()].split()]
    is_one = match["first"] in ("a", "an") and before[-1] in COUNTED_AFTER
    if len(sure) < 2 or not is_one or plural(match["noun"]) not in NOUN:
        return False
    boxes = np.array([x["box"] for x in sure], "float32")
    scores = np.array([x["score"] for x in sure], "float32")
    return len(APART(boxes, scores, np.zeros(len(sure), "int64"), most=2)) == 2


def _is_sure(number, objects):
    """Whether as many objects as a number says, if it is one, are surely there."""
    scores = sorted((x["score"] for x in objects), reverse=True)
    count = NUMBERS.get(number, 0)
    return not 0 < count <= len(scores) or scores[count - 1] >= SURE


def _common(objects, key):
    """What all objects have, such as a colour, or `None`."""
    values = {x.get(key) for x in objects}
    return values.pop() if len(values) == 1 else None


def _is_new(name, objects):
    """Whether a thing is none of the objects, whose names may be parts of its own."""
    names = {word for x in objects for word in (x["category"], x.get("name"))}
    return not any(word and word in name for word in names)


# === Links ===


def links_of(
    text: str,
    objects: Sequence[Mapping[str, Any]],
    actions: Sequence[Action] = (),
) -> list[Link]:
    """Links the words of a caption to the objects that admit them.

    Args:
        text, objects, actions: The text and the arguments of `describe`.

    Returns:
        List of dict, see `describe`; of places, those that objects imply.
    """
    links = _names(text, objects)
    taken = _places_of(links)
    for match in PATTERN.finditer(text):
        own = [x for x in objects if x["category"] == category_of(match[0])]
        if own and match.start() not in taken:
            links += _noun(text, match, own)
    taken = _places_of(links)
    nouns = [x for x in links if x["kind"] in (OBJECT, NAME)]
    for match in re.finditer(r"\S+", text):
        word, start = match[0], match.start()
        if start in taken:
            continue
        if own := [
            x for x in objects if x["category"] in implied_words().get(word, ())
        ]:
            links.append(_of_objects(word, start, PLACE, own, "score"))
        elif word in RELATIONS:
            before = [x for x in nouns if x["start"] < start]
            after = [x for x in nouns if x["start"] > start]
            if own := [*before[-1:], *after[:1]]:
                boxes = [box for x in own for box in x["boxes"]]
                shares = [x["probability"] for x in own]
                shares += probability_of_verb(word, actions)
                links.append(_link(word, start, RELATION, boxes, shares))
    return sorted(links, key=lambda x: x["start"])


def _names(text, objects):
    """Links of finer names."""
    of_names = {}
    for found in objects:
        if name := found.get("name"):
            for words in (name, plural(name)):
                of_names.setdefault(words, []).append(found)
    return [
        _of_objects(name, match.start(), NAME, own, "name_probability")
        for name, own in of_names.items()
        for match in re.finditer(rf"(?<!\S){re.escape(name)}(?!\S)", text)
    ]


def _noun(text, match, own):
    """Links of a noun and of the colour before it."""
    links = [_of_objects(match[0], match.start(), OBJECT, own, "score")]
    colour = _common(own, "colour")
    if colour and text[: match.start()].endswith(f" {colour} "):
        start = match.start() - len(colour) - 1
        links.insert(0, _of_objects(colour, start, COLOUR, own, "colour_probability"))
    return links


def _places_of(links):
    """The places in a text that links have."""
    return {i for x in links for i in range(x["start"], x["start"] + len(x["word"]))}


def _of_objects(word, start, kind, objects, key):
    boxes = [list(x["box"]) for x in objects]
    return _link(word, start, kind, boxes, [x[key] for x in objects])


def _link(word, start, kind, boxes, probabilities):
    return {
        "word": word,
        "start": start,
        "kind": kind,
        "probability": min(probabilities),
        "boxes": boxes,
    }
