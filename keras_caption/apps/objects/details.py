"""The table of words that measurements of a photo admit, and what reads it.

For each word, the table, `details.csv`, has the least probability at which 90 % or more
are right of those said; `details.npz` has the weights of the logistic regressions that
give these probabilities. `actions.csv` and `actions.npz` have the same of what persons
and animals do. docs/results/photos.md says how all were fitted.
"""

import csv
import functools
import importlib.resources
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

COLOUR, NAME, PLACE, ACTION = "colour", "name", "place", "action"
FILES = ("details", "actions")
LEAST = 1e-12  # of a probability, before its logarithm


class Detail(NamedTuple):
    """A row of the table.

    Attributes:
        kind: str, `"colour"`, `"name"`, `"place"` or `"action"`.
        word: str, what is said.
        of: str, the category of the objects that may have a colour or name, or do
            something; or `"thing"` or `"animal"`, see
            `keras_caption.apps.objects.thing_colours` and `actions`; empty for a
            place.
        least: float, least probability.
        said: int, number of photos, of those that it was fitted on, in which the
            probability is not less.
        right: float, share of these in which people say the word.
        held_out_said, held_out_right: The same, of other photos.
    """

    kind: str
    word: str
    of: str
    least: float
    said: int
    right: float
    held_out_said: int
    held_out_right: float


@functools.cache
def details() -> tuple[Detail, ...]:
    """The rows of the tables."""
    kinds = Detail.__annotations__
    return tuple(
        Detail(**{key: kinds[key](row[key]) for key in kinds})
        for name in FILES
        for row in csv.DictReader(_file(f"{name}.csv").read_text("utf-8").splitlines())
    )


def admits(kind: str, word: str, probability: float, of: str = "") -> bool:
    """Whether a word is probable enough to be said.

    Args:
        kind, word, of: As in `Detail`.
        probability: float.
    """
    asked = kind, word, of
    rows = (row for row in details() if (row.kind, row.word, row.of) == asked)
    return any(probability >= row.least for row in rows)


# === Logistic regressions ===


def probability_of(word: str, values: Float[np.ndarray, " values"]) -> float:
    """The probability of a word, by its logistic regression.

    Args:
        word: str, of a row of the table, in the singular; of a thing's colour, with
            `"thing"`.
        values: float `(values,)`, what was measured.
    """
    weights = _weights()[word]
    return 1 / (1 + math.exp(-float(values @ weights[:-1] + weights[-1])))


def class_logits(
    classes: Float[np.ndarray, "... 1000"],
) -> Float[np.ndarray, "... 1000"]:
    """Logarithms of probabilities, less their mean."""
    logits = np.log(np.maximum(np.asarray(classes, "float32"), LEAST))
    return logits - logits.mean(axis=-1, keepdims=True)


@functools.cache
def _weights():
    """From each word of the files to its weights and, last, its bias."""
    weights = {}
    for name in FILES:
        file = _file(f"{name}.npz")
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            weights |= {x: arrays[x].astype("float32") for x in arrays.files}
    return weights


def _file(name):
    return importlib.resources.files("keras_caption.apps.objects") / name
