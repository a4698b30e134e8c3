"""Which of COCO's categories of objects captions name."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.features import CATEGORIES

# Other words of a category. The choice is ours; plurals are found without being listed
# unless they are irregular.
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
# Names within other names: a hot dog is no dog.
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


def named_objects(caption: str) -> set[str]:
    """The categories of `keras_caption.features.CATEGORIES` that a caption names.

    Singular and plural of a category's name and of its usual synonyms count.

    Args:
        caption: str.
    """
    mentions = PATTERN.findall(" ".join(caption.lower().split()))
    return {category_of(words) for words in mentions}


def category_of(words: str) -> str:
    """The category of a match of `PATTERN`."""
    for end in ("", "s", "es"):
        if words.removesuffix(end) in CATEGORY:
            return CATEGORY[words.removesuffix(end)]
    raise AssertionError(words)  # the pattern is made of these words


def object_agreement(
    captions: Mapping[Any, str], references: Mapping[Any, Sequence[str]]
) -> tuple[float, float]:
    """Whether captions name the objects that people name.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.

    Returns:
        Precision, the share of categories named by captions that a person names too;
        and recall, the share of categories named by any person that captions name.
        Both are over the categories of all images together.
    """
    named = {i: named_objects(caption) for i, caption in captions.items()}
    by_people = {i: set().union(*map(named_objects, references[i])) for i in captions}
    both = sum(len(named[i] & by_people[i]) for i in captions)
    precision = both / max(sum(map(len, named.values())), 1)
    return precision, both / max(sum(map(len, by_people.values())), 1)
