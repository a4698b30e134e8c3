"""Colours of dogs, as people call them, from ImageNet's classes and pixels of a box.

Breeds tell most: a Border collie is black and white. Logistic regressions, see
`keras_caption.apps.objects.details`.
"""

import numpy as np
from jaxtyping import Float

from keras_caption.apps.objects.details import (
    COLOUR,
    class_logits,
    details,
    probability_of,
)

DOG = "dog"
# What people say of dogs, and the colours of such; the first one that is sure is said.
DOG_COLOURS = {
    "black and white": frozenset({"black", "white"}),
    "black": frozenset({"black"}),
    "brown": frozenset({"brown"}),
    "white": frozenset({"white"}),
}
# Least probability for each of several dogs, of which a box may show another as well.
OF_SEVERAL = 0.75


def likely_dog_colour(
    box_classes: Float[np.ndarray, "1000"],
    shares: Float[np.ndarray, "16"],
    several: bool = False,
) -> tuple[str, float] | None:
    """The colour of a dog and its probability, or `None` if none is sure.

    Args:
        box_classes: float `(1000,)`, probabilities of ImageNet's classes in its box.
        shares: float `(16,)`, see `pixel_shares` of
            `keras_caption.apps.objects.object_colours`.
        several: bool, whether the photo has more dogs. All have to be surer then.
    """
    values = values_of(box_classes, shares)
    rows = {x.word: x for x in details() if (x.kind, x.of) == (COLOUR, DOG)}
    for word in filter(rows.__contains__, DOG_COLOURS):
        probability = min(probability_of(x, values) for x in DOG_COLOURS[word])
        if probability >= max(rows[word].least, OF_SEVERAL if several else 0.0):
            return word, probability
    return None


def values_of(
    box_classes: Float[np.ndarray, "1000"], shares: Float[np.ndarray, "16"]
) -> Float[np.ndarray, "1016"]:
    """What tells the colour of a dog, see `likely_dog_colour`."""
    return np.append(class_logits(box_classes), np.sqrt(shares))


def is_called(word: str, colours: frozenset[str]) -> bool:
    """Whether a dog to which a person gives these colours may be called a word.

    A dog of two colours is a black dog too, and no dog of one is black and white.
    """
    own = DOG_COLOURS[word]
    return own == colours if len(own) > 1 else own <= colours
