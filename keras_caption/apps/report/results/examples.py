"""Examples of a test split, and what models say of them."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass
class Attention:
    """What each word of a line attends to, or is attended to by.

    Attributes:
        areas: float `(M, 4)`, x1, y1, x2, y2 of the items, divided by the image's width
            and height; or `None`, if the items are words of a source.
        weights: float `(words, M)`, shares from 0 to 1.
        names: List of str, of the items, or `None`; of a source, its words.
        gap: str, between words of a source: empty if they are parts of words.
    """

    areas: np.ndarray | None
    weights: np.ndarray
    names: list[str] | None = None
    gap: str = " "


@dataclasses.dataclass
class Line:
    """What a model says of an example.

    Attributes:
        words: List of str: a caption, a translation, or the question that is answered.
        answer: str, to a question, or `None`.
        truth: str, the answer that a person gave, or `None`.
        kind: str, type of the question; empty if there is none.
        score: float, of this line, or `None`.
        attention: `Attention` of the words, or `None`.
        gap: str, between words: empty if they are characters.
    """

    words: list[str]
    answer: str | None = None
    truth: str | None = None
    kind: str = ""
    score: float | None = None
    attention: Attention | None = None
    gap: str = " "


@dataclasses.dataclass
class Example:
    """An example, and what one model or several say of it.

    Attributes:
        lines: List of `Line`; those of one model, then those of the next.
        references: List of str that persons wrote.
        source: str, the sentence that is translated, or `None`.
        image: uint8 `(height, width, 3)`, or `None`.
    """

    lines: list[Line]
    references: list[str] = dataclasses.field(default_factory=list)
    source: str | None = None
    image: np.ndarray | None = None


@dataclasses.dataclass
class Outcome:
    """What a model says of a whole test split.

    Attributes:
        outputs: List of str: captions, translations or answers.
        references: List of lists of str that persons wrote, of the same examples.
        scores: dict from the key of an example, such as an image id, to float.
        score: str, what these scores are.
        counts: dict from a part of the scores, such as `"kinds"`, to a dict from a name
            to the number of items that its score is of.
    """

    outputs: list[str]
    references: list[list[str]]
    scores: dict[Any, float]
    score: str
    counts: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
