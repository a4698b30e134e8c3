"""Checks answers to questions by detected objects."""

import re
from collections.abc import Sequence
from typing import Any

from keras_caption.features.object_words import mentions

COUNTED = 0.5  # least score of a counted object
NUMBERS = (  # words for the numbers from 0 on
    *("zero", "one", "two", "three", "four", "five"),
    *("six", "seven", "eight", "nine", "ten"),
)
HOW_MANY = re.compile(r"\bhow many\b(.*)", re.IGNORECASE | re.DOTALL)


def count_of(
    question: str, objects: Sequence[dict[str, Any]]
) -> tuple[int, float] | None:
    """Counts the detected objects of the category that a question asks for.

    Args:
        question: str. A question for a number asks "how many", and then names a
            category of `keras_caption.features.CATEGORIES`.
        objects: Sequence of dict of `category` and `score`.

    Returns:
        int, the number of objects, and float, their least score. `None` if the question
        asks for no number, or no object has a score of at least `COUNTED`.
    """
    match = HOW_MANY.search(question)
    named = mentions(match[1]) if match else []
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
    """Whether an answer names categories, and no object of these is detected.

    Args:
        answer: str.
        objects: Sequence of dict of `category`.
    """
    named = {category for _, category in mentions(answer)}
    return bool(named) and not named & {x["category"] for x in objects}
