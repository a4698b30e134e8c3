"""The words by which captions name COCO's categories of objects."""

import collections
import re
from collections.abc import Iterable
from typing import Any

from keras_caption.formats.coco_categories import CATEGORIES

# Synonyms of the names of categories. The choice is ours. Regular plurals are matched
# too; irregular ones are listed.
SYNONYMS = {
    "person": "man woman boy girl child kid baby lady guy people men women children "
    "player rider skier snowboarder surfer skateboarder batter pitcher catcher worker",
    "bicycle": "bike",
    "car": "taxi suv",
    "motorcycle": "motorbike scooter moped",
    "airplane": "plane jet aircraft",
    "boat": "ship sailboat canoe kayak",
    "cat": "kitten",
    "dog": "puppy",
    "cow": "bull calf cattle",
    "sheep": "lamb",
    "horse": "pony",
    "bird": "duck pigeon seagull parrot owl",
    "backpack": "rucksack",
    "umbrella": "parasol",
    "handbag": "purse",
    "tie": "necktie",
    "suitcase": "luggage",
    "sports ball": "ball soccerball baseball basketball",
    "baseball bat": "bat",
    "tennis racket": "racket racquet",
    "wine glass": "wineglass",
    "cup": "mug",
    "knife": "knives",
    "donut": "doughnut",
    "couch": "sofa",
    "potted plant": "plant houseplant",
    "dining table": "table",
    "tv": "television",
    "laptop": "notebook",
    "cell phone": "phone cellphone smartphone",
    "refrigerator": "fridge",
    "teddy bear": "teddy",
}
# Words for some objects of a category only: each woman is a person, not each person is
# a woman.
_NARROWER = """
man woman boy girl child kid baby lady guy men women children player rider skier
snowboarder surfer skateboarder batter pitcher catcher worker taxi suv scooter moped jet
ship sailboat canoe kayak kitten puppy bull calf lamb pony duck pigeon seagull parrot
owl parasol soccerball baseball basketball
"""
NARROWER = frozenset(_NARROWER.split())
# Words for other things too: not each plant is in a pot, and a bat may fly.
_BROADER = "ball bat racket racquet phone luggage plant table notebook orange"
BROADER = frozenset(_BROADER.split())
# Longer names are matched first: a hot dog is no dog.
LONGEST_FIRST = sorted(
    (
        (words, category)
        for category in CATEGORIES
        for words in (category, *SYNONYMS.get(category, "").split())
    ),
    key=lambda pair: -len(pair[0].split()),
)
PATTERN = re.compile(
    r"\b(?:" + "|".join(words for words, _ in LONGEST_FIRST) + r")(?:s|es)?\b"
)
CATEGORY = dict(LONGEST_FIRST)
ENDS = ("", "s", "es")
IRREGULAR_PLURALS = ("people", "men", "women", "children", "cattle", "knives")
# From every phrase that names a category, singular or plural, to its singular.
NOUN = {words + end: words for end in reversed(ENDS) for words in CATEGORY}

# Phrases that are plural. `skis` and `scissors` name one object: they are not.
PLURALS = {words for words in NOUN if words not in CATEGORY} | set(IRREGULAR_PLURALS)


def mentions(caption: str) -> list[tuple[str, str]]:
    """Lists the nouns of a caption that name categories, in their order.

    Args:
        caption: str.

    Returns:
        List of pairs of a noun and its category, one of
        `keras_caption.objects.CATEGORIES`. Nouns are in the singular, unless their
        plural is irregular.
    """
    nouns = PATTERN.findall(" ".join(caption.lower().split()))
    return [(NOUN[words], category_of(words)) for words in nouns]


def said_several(caption: str) -> set[str]:
    """The categories that a caption names in the plural.

    Args:
        caption: str.
    """
    nouns = PATTERN.findall(" ".join(caption.lower().split()))
    return {category_of(words) for words in nouns if words in PLURALS}


def several_of_one(caption: str, objects: Iterable[str]) -> set[str]:
    """Categories that a caption names in the plural, and that only one object has.

    Args:
        caption: str.
        objects: Iterable of the category of each object.
    """
    numbers = collections.Counter(objects)
    return {x for x in said_several(caption) if numbers[x] == 1}


def least_score(caption: str, objects: Iterable[dict[str, Any]]) -> float:
    """The least score of the objects that a caption names.

    A category in the singular counts by its best object, one in the plural by its
    second best.

    Args:
        caption: str.
        objects: Iterable of dict of `category` and `score`, see
            `keras_caption.objects.ObjectDetector.objects_of`.

    Returns:
        float; 0 if a named category has no object, or the caption names none.
    """
    scores = collections.defaultdict(list)
    for detected in objects:
        scores[detected["category"]].append(detected["score"])
    several = said_several(caption)
    named = {category for _, category in mentions(caption)}
    least = []  # one score for each named category
    for category in named:
        best = sorted(scores[category], reverse=True)[: 2 if category in several else 1]
        least.append(min(best, default=0.0))
    return min(least, default=0.0)


def category_of(words: str) -> str:
    """The category of a match of `PATTERN`."""
    return CATEGORY[NOUN[words]]
