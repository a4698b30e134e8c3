"""The table of words, and of the evidence that each needs."""

import functools
import importlib.resources
import pathlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from keras_caption.base.errors import InputError
from keras_caption.formats.coco_categories import CATEGORIES
from keras_caption.formats.csv_rows import csv_rows

COLUMNS = ("word", "kind", "names", "condition", "after", "share right", "photos")
NOUNS = ("one", "an_one", "several", "unchanged", "pair")
IMPLIED = ("place", "an_place", "mass", "contents", "living", "verb")
RELATIONS = ("preposition", "transitive", "posture", "next", "with", "and", "of")
START, END, UNKNOWN = "start", "end", "unknown"  # kinds of no row, see `followers`


@functools.cache
def followers() -> dict[str, frozenset[str]]:
    """Which kinds of words may follow each kind, and `START`, as `grammar.csv` says.

    `END` may follow what a caption may end with. After a word that the table of
    evidence lacks, of kind `UNKNOWN`, anything may.
    """
    own = importlib.resources.files("keras_caption.apps.objects") / "grammar.csv"
    _, *rows = csv_rows(pathlib.Path(str(own)))
    found = {kind: frozenset(text.split()) for _, (kind, text, _) in rows}
    found[END] = frozenset()
    found[UNKNOWN] = frozenset(found) - {START}
    return found


def kinds() -> list[str]:
    """The kinds of the rows of a table."""
    return [kind for kind in followers() if kind not in (START, END, UNKNOWN)]


# The path of a table, or its rows.
Table: TypeAlias = str | pathlib.Path | Sequence[Sequence[str]] | None


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


def read_table(table: Table = None) -> list[Row]:
    """Reads a table of evidence.

    Args:
        table: path of a CSV file with the header `COLUMNS`; or its rows without that,
            lists of seven str. Defaults to the table of COCO's categories.

    Raises:
        InputError: If it is not such a table.
    """
    header = [*COLUMNS]
    if table is None or isinstance(table, str | pathlib.Path):
        own = importlib.resources.files("keras_caption.apps.objects") / "evidence.csv"
        numbered = [*csv_rows(pathlib.Path(table or str(own)))]
        if numbered and numbered[0][1] != header:
            raise InputError(
                f"{numbered[0][0]}: the columns must be {', '.join(header)}."
            )
    else:
        numbered = [("", header)]
        numbered += [(f"row {i} of the table", [*x]) for i, x in enumerate(table)]
    rows = []
    for place, cells in numbered[1:]:
        if len(cells) != len(COLUMNS):
            raise InputError(f"{place}: the columns must be {', '.join(header)}.")
        word, kind, names, condition, after, share, photos = cells
        if kind not in kinds():
            raise InputError(
                f"{place}: {kind!r} is no kind of words. These are: "
                f"{', '.join(kinds())}."
            )
        if len(word.split()) > 2:
            raise InputError(f"{place}: {word!r} has more than two words.")
        rows.append(Row(word, kind, names, condition, after, share, photos, place))
    return rows


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
