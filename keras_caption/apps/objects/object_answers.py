"""Answers questions about the number and the presence of detected objects."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_caption.apps.objects.object_words import BROADER, NARROWER, PATTERN, mentions
from keras_caption.text.answers import normalize_answer

COUNTED = 0.5  # least score of a counted object
SURE = 0.6  # least probability of a sure answer that there is an object, or is none
HOW_MANY = re.compile(r"\bhow many\b(.*)", re.IGNORECASE | re.DOTALL)
# Of a detector that was not measured: a score is its own confidence.
UNMEASURED = ((0.0, 0.0), (1.0, 1.0))

# === Questions of whether there is an object, such as "Are there any dogs here?" ===

PICTURE = r"(?:the|this|that) (?:photo|photograph|picture|image|scene|shot)"
ASKS = (
    r"(?:is|are|was|were) (?:there|this|that|these|those|it|they)|"
    r"(?:do|can|could) (?:you|we|i) (?:see|spot|find)|"
    rf"(?:do|does|did) {PICTURE} (?:show|have|contain|include)"
)
SOME = r"(?:an?|any|some|at least one)"
WHERE = rf"(?:here|anywhere|visible|present|shown|pictured|(?:in|on|within) {PICTURE})"
PRESENCE = re.compile(
    rf"(?:(?:{ASKS})(?: {SOME})?|{SOME}) (?P<noun>{PATTERN.pattern})(?: {WHERE})*"
    rf"|(?:is|are) {SOME} (?P<placed>{PATTERN.pattern})(?: {WHERE})+"
)


def count_of(
    question: str, objects: Sequence[dict[str, Any]]
) -> tuple[int, float] | None:
    """Counts the detected objects of the category that a question asks for.

    Args:
        question: str. A question for a number asks "how many", and then names a
            category of `keras_caption.objects.CATEGORIES`.
        objects: Sequence of dict of `category` and `score`.

    Returns:
        int, the number of objects, and float, their least score. `None` if the question
        asks for no number, or no object has a score of at least `COUNTED`.
    """
    category = counted(question)
    scores = [score for score in scores_of(category, objects) if score >= COUNTED]
    return (len(scores), min(scores)) if scores else None


def counted(question: str) -> str | None:
    """The category whose objects a question wants to be counted, or `None`."""
    match = HOW_MANY.search(question)
    named = mentions(match[1]) if match else []
    return named[0][1] if named else None


def presence_of(
    question: str,
    objects: Sequence[dict[str, Any]],
    recall: Mapping[str, float] | None = None,
    calibration: Sequence[Sequence[float]] | None = None,
) -> tuple[str, float] | None:
    """Answers a question of whether there is an object of a category.

    Of a detection, the calibration says how often it is right. Without a detection, an
    object that is as likely to be there as not is missed with the share 1 - recall:

        p(there | undetected) = (1 - recall) / (1 + 1 - recall)

    Args:
        question: str, such as "Is there a dog?" or "Do you see any cats in the photo?".
        objects: Sequence of dict of `category` and `score`.
        recall, calibration: As the arguments of `keras_caption.models.Classifier`.

    Returns:
        str, `"yes"` or `"no"`, and float, its probability. `None` if the question asks
        for something else, or the detections do not decide: a detected person may be no
        woman, and an undetected houseplant leaves other plants.
    """
    match = PRESENCE.fullmatch(" ".join(re.findall(r"[\w-]+", question.lower())))
    if match is None:
        return None
    [(noun, category)] = mentions(match["noun"] or match["placed"])
    score = max(scores_of(category, objects), default=0.0)
    if noun in (NARROWER if score else BROADER):
        return None
    if score:
        there = float(np.interp(score, *np.transpose(calibration or UNMEASURED)))
    else:
        missed = 1 - (recall or {}).get(category, 0.0)
        there = missed / (1 + missed)
    return ("yes", there) if there > 0.5 else ("no", 1 - there)


def scores_of(category: str | None, objects: Sequence[dict[str, Any]]) -> list[float]:
    """The scores of the detected objects of a category."""
    return [x["score"] for x in objects if x["category"] == category]


def is_number(answer: str, number: int) -> bool:
    """Whether an answer is a number, in digits or, up to ten, in words."""
    return normalize_answer(answer) == str(number)


def is_contradicted(
    question: str, answer: str, objects: Sequence[dict[str, Any]]
) -> bool:
    """Whether an answer supposes objects of which none is detected.

    An answer that names categories supposes one of these. A number other than 0
    supposes what the question wants to be counted, and a yes supposes what the question
    names, of which one is enough after "or".

    Args:
        question, answer: str.
        objects: Sequence of dict of `category`.
    """
    detected = {x["category"] for x in objects}
    if named := {category for _, category in mentions(answer)}:
        return not named & detected
    if category := counted(question):
        return category not in detected and not is_number(answer, 0)
    named = {category for _, category in mentions(question)}
    if answer != "yes" or not named:
        return False
    if re.search(r"\bor\b", question.lower()):
        return not named & detected
    return not named <= detected
