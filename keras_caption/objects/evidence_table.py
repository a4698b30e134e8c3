"""The table of words, and of the evidence that each needs."""

import functools
import importlib.resources
import pathlib
from typing import NamedTuple

from keras_caption.errors import InputError
from keras_caption.formats.csv_rows import csv_rows
from keras_caption.objects.categories import CATEGORIES

COLUMNS = ("word", "kind", "names", "condition", "after", "share right", "photos")
NOUNS = ("one", "an_one", "several", "unchanged", "pair")
IMPLIED = ("place", "an_place", "mass", "contents", "living", "verb")
RELATIONS = ("preposition", "transitive", "posture", "next", "with", "and", "of")
ARTICLES = ("a", "an", "the")
START, END, UNKNOWN = "start", "end", "unknown"  # kinds of no row, see `followers`


@functools.cache
def followers() -> dict[str, frozenset[str]]:
    """Which kinds of words may follow each kind, and `START`, as `grammar.csv` says.

    `END` may follow what a caption may end with. After a word that the table of
    evidence lacks, of kind `UNKNOWN`, anything may.
    """
    own = importlib.resources.files("keras_caption.objects") / "grammar.csv"
    _, *rows = csv_rows(pathlib.Path(str(own)))
    found = {kind: frozenset(text.split()) for _, (kind, text, _) in rows}
    found[END] = frozenset()
    found[UNKNOWN] = frozenset(found) - {START}
    return found


def kinds() -> list[str]:
    """The kinds of the rows of a table."""
    return [kind for kind in followers() if kind not in (START, END, UNKNOWN)]


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
    own = importlib.resources.files("keras_caption.objects") / "evidence.csv"
    rows: list[Row] = []
    for place, cells in csv_rows(pathlib.Path(path or str(own))):
        if len(cells) != len(COLUMNS) or not (rows or cells == [*COLUMNS]):
            raise InputError(f"{place}: the columns must be {', '.join(COLUMNS)}.")
        word, kind, names, condition, after, share, photos = cells
        rows.append(Row(word, kind, names, condition, after, share, photos, place))
        if len(rows) > 1 and rows[-1].kind not in kinds():
            raise InputError(
                f"{place}: {cells[1]!r} is no kind of words. These are: "
                f"{', '.join(kinds())}."
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
