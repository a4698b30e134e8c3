"""Finer names of persons, from ImageNet's classes of their boxes and of the photo.

ImageNet has no class of persons. What they wear, hold and do, and where, tells how
people call them: a name is said where it is sure, and otherwise "a person".
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from keras_caption.apps.objects.details import (
    NAME,
    class_logits,
    details,
    probability_of,
)

PERSON = "person"


class PersonName(NamedTuple):
    """A finer name of persons, which is said if the table has it.

    Attributes:
        plural: str.
        words: str, a regular expression of what people say of such persons.
        others: str, the same of persons who have another name.
    """

    plural: str
    words: str
    others: str


_CHILD = r"child(?:ren)?|kids?|toddlers?|bab(?:y|ies)|infants?|boys?|girls?"
_WOMAN = r"wom[ae]n|lad(?:y|ies)|females?"
_MAN = r"m[ae]n|guys?|gentlem[ae]n|males?"
PERSON_NAMES = {
    "child": PersonName("children", _CHILD, f"{_MAN}|{_WOMAN}"),
    "man": PersonName("men", _MAN, f"{_WOMAN}|{_CHILD}"),
    "woman": PersonName("women", _WOMAN, f"{_MAN}|{_CHILD}"),
}


def likely_person_name(
    box_classes: Float[np.ndarray, "1000"],
    classes: Float[np.ndarray, "1000"],
    several: bool = False,
) -> tuple[str, float] | None:
    """The name of a person and its probability, or `None` if none is sure.

    Args:
        box_classes: float `(1000,)`, probabilities of ImageNet's classes in the
            person's box.
        classes: float `(1000,)`, the same of the whole photo.
        several: bool, whether the photo has more persons. All have to be surer then.
    """
    values = values_of(box_classes, classes)
    rows = {x.word: x for x in details() if (x.kind, x.of) == (NAME, PERSON)}
    sure = []
    for name, own in PERSON_NAMES.items():
        row = rows.get(own.plural if several else name)
        if row and (probability := probability_of(name, values)) >= row.least:
            sure.append((name, probability))
    return max(sure, key=lambda x: x[1], default=None)


def values_of(
    box_classes: Float[np.ndarray, "1000"], classes: Float[np.ndarray, "1000"]
) -> Float[np.ndarray, "2000"]:
    """What tells the name of a person, see `likely_person_name`."""
    return np.append(class_logits(box_classes), class_logits(classes))
