"""What detected objects say of an answer to a question."""

import re
from collections.abc import Sequence
from typing import Any

from keras_caption.features.object_words import mentions

COUNTED = 0.5  # least score of an object that is counted
NUMBERS = (  # in words
    *("zero", "one", "two", "three", "four", "five"),
    *("six", "seven", "eight", "nine", "ten"),
)
HOW_MANY = re.compile(r"\bhow many\b(.*)", re.IGNORECASE | re.DOTALL)


def count_of(
    question: str, objects: Sequence[dict[str, Any]]
) -> tuple[int, float] | None:
    """The number of objects that a question asks for, as far as they are detected.

    Args:
        question: str. It asks "how many", and then names a category of
            `keras_caption.features.CATEGORIES`; other questions have no such number.
        objects: Sequence of dict of `category` and `score`.

    Returns:
        int, the number, and float, the least score of the objects that it counts; or
        `None` if none is detected with a score of `COUNTED`.
    """
    asked = HOW_MANY.search(question)
    named = mentions(asked[1]) if asked else []
    if not named:
        return None
    _, category = named[0]
    scores = [x["score"] for x in objects if x["category"] == category]
    scores = [score for score in scores if score >= COUNTED]
    return (len(scores), min(scores)) if scores else None


def is_number(answer: str, number: int) -> bool:
    """Whether an answer is a number, in digits or, up to ten, in words."""
    return answer in (str(number), *NUMBERS[number : number + 1])


def is_undetected(answer: str, objects: Sequence[dict[str, Any]]) -> bool:
    """Whether an answer names categories of which no object is detected.

    Args:
        answer: str.
        objects: Sequence of dict of `category`.
    """
    named = {category for _, category in mentions(answer)}
    return bool(named) and not named & {x["category"] for x in objects}
