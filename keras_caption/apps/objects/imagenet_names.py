"""Names of ImageNet's classes, as people say them, and COCO's categories of them.

`imagenet_names.csv` lists them: a name, its category of COCO or nothing, its kind, the
classes that it names, by their indices in the order of ImageNet's 1,000 synsets, and
the least probability of a finer name. A name whose classes are among those of another
one is finer: "golden retriever" (207), "retriever" (205-209), "dog" (151-268). The
classes are facts of the ImageNet challenge of 2012; the choice of names, and the
hierarchy, follow the hypernyms of WordNet where people use these words, and are ours
elsewhere.
"""

import csv
import functools
import pathlib
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

CLASSES = 1000
TABLE = pathlib.Path(__file__).with_name("imagenet_names.csv")


class ImageNetName(NamedTuple):
    """A row of the table.

    Attributes:
        name: str, what people call it.
        category: str, one of `keras_caption.objects.CATEGORIES`, or empty.
        kind: str, `"animal"`, `"vehicle"`, `"food"`, `"thing"` or `"place"`.
        classes: tuple of int, indices of ImageNet's classes.
        least: float, least probability at which a detected object has the name, fitted
            as docs/results/photos.md says; infinity of names that none has.
    """

    name: str
    category: str
    kind: str
    classes: tuple[int, ...]
    least: float


@functools.cache
def imagenet_names() -> tuple[ImageNetName, ...]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(
            ImageNetName(
                row["name"],
                row["category"],
                row["kind"],
                tuple(
                    index
                    for part in row["classes"].split()
                    for index in indices_of(part)
                ),
                float(row["least"] or "inf"),
            )
            for row in csv.DictReader(file)
        )


def indices_of(part: str) -> range:
    """The indices of a part of a cell: `"207"` or `"205-209"`."""
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


@functools.cache
def members() -> Bool[np.ndarray, "names 1000"]:
    """Which classes each name has, in the order of `imagenet_names`."""
    return np.stack(
        [np.isin(np.arange(CLASSES), row.classes) for row in imagenet_names()]
    )
