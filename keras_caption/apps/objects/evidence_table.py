"""The table of words, and of the evidence that each needs."""

import functools
import importlib.resources
import pathlib
from typing import NamedTuple

from keras_caption.base.errors import InputError
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.formats.csv_rows import csv_rows

COLUMNS = ("word", "kind", "names", "condition", "after", "share right", "photos")
NOUNS = ("one", "an_one", "several", "unchanged", "pair")
IMPLIED = ("place", "an_place", "mass", "contents", "living", "verb")
RELATIONS = ("preposition", "transitive", "posture", "next", "with", "and", "of")
ARTICLES = ("a", "an", "the")
OTHERS = ("set", *ARTICLES, "be", "number", "group", "to", "each", "other", "within")
KINDS = (*NOUNS, *IMPLIED, *RELATIONS, *OTHERS)


class Row(NamedTuple):
    """A row of the table, whose columns docs/photos.md explains."""

    word: str
    kind: str
    names: str
    condition: str
    after: str
    share: str
    photos: str
    place: str  # of the row, for messages


def read_table(path: str | pathlib.Path | None = None) -> list[Row]:
    """Reads a table of evidence.

    Args:
        path: path of a CSV file. Defaults to the table of COCO's categories.

    Raises:
        InputError: If the file is not such a table.
    """
    own = importlib.resources.files("keras_caption.apps.objects") / "evidence.csv"
    rows: list[Row] = []
    for place, cells in csv_rows(pathlib.Path(path or str(own))):
        if len(cells) != len(COLUMNS) or not (rows or cells == [*COLUMNS]):
            raise InputError(f"{place}: the columns must be {', '.join(COLUMNS)}.")
        word, kind, names, condition, after, share, photos = cells
        rows.append(Row(word, kind, names, condition, after, share, photos, place))
        if len(rows) > 1 and rows[-1].kind not in KINDS:
            raise InputError(
                f"{place}: {cells[1]!r} is no kind of words. These are: "
                f"{', '.join(KINDS)}."
            )
        if len(cells[0].split()) > 2:
            raise InputError(f"{place}: {cells[0]!r} has more than two words.")
    return rows[1:]


@functools.cache
def implied_words() -> dict[str, frozenset[str]]:
    """COCO's categories that imply each word for a place or a person."""
    rows = read_table()
    sets = {row.word: row.condition for row in rows if row.kind == "set"}
    found: dict[str, frozenset[str]] = {}
    for row in rows:
        if row.kind in IMPLIED and row.kind != "verb":
            names = " ".join(sets.get(x, x) for x in row.condition.split()).split()
            categories = {x.replace("_", " ") for x in names} & {*CATEGORIES}
            found[row.word] = found.get(row.word, frozenset()) | categories
    return {word: categories for word, categories in found.items() if categories}
