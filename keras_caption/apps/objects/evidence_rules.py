"""The table of words that objects are evidence for, over a vocabulary."""

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from keras_caption.apps.objects.box_relations import GEOMETRY
from keras_caption.apps.objects.evidence_table import (
    IMPLIED,
    NOUNS,
    RELATIONS,
    Row,
    Table,
    read_table,
)
from keras_caption.base.errors import InputError
from keras_caption.text import Vocabulary
from keras_caption.text.answers import ARTICLES

BOXES = re.compile(rf"({'|'.join(GEOMETRY)}): (.+) / (.+)")
SAID_OF = re.compile(r"said of (.+)")
NUMBER = re.compile(r"(\d+)( or more)? objects")
NEXT = re.compile(r"next (.+)")
WITH_OBJECT = re.compile(r"(\w+) an object")
MOST = 10**6  # a number of objects that no image has
# Words that need others behind them, or nothing.
STATES = ("", "together", "of one", "of several", *ARTICLES)


class Entry(NamedTuple):
    """One or two words that a fact admits.

    Attributes:
        tokens: tuple of one or two int.
        begins: bool, whether the fact admits the first of two tokens.
        kind: str.
        fact: tuple of two str, a key of `EvidenceRules.facts`.
        leads: bool, whether the fact admits an article or a form of "be" before it.
    """

    tokens: tuple[int, ...]
    begins: bool
    kind: str
    fact: tuple[str, str]
    leads: bool


class EvidenceRules:
    """What the rows of a table say of the words that a vocabulary has.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`.
        categories: Sequence of str.
        table: As in `keras_caption.apps.objects.evidence_table.read_table`.

    Attributes:
        relations: dict from a relation to a name of `GEOMETRY`, and a list of tuples of
            two lists of categories, whose boxes must lie so, and whether these must
            differ.
        implied: dict from a word for no category to a list of alternatives. An image
            needs all atoms of one of these: int, a category, or a tuple of a category,
            a relation and a category.
        subjects: dict from a verb, `("implied", verb)`, or a relation to a place,
            `("relation", name)`, to the categories that it may be said of.
        numbers: dict from a word to a least and a greatest number of objects.
        facts: dict from all that may hold of an image and a begun caption to its
            place: that one object of a category, or several, may come next; that an
            implied word may; that there is an object or a place for a relation; that
            there are so many objects; that there is an object for a relation; and
            `STATES`.
        entries: list of `Entry`.

    Raises:
        InputError: If a row of the table says something unknown.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        categories: Sequence[str],
        table: Table = None,
    ):
        self.categories = list(categories)
        self.ids = {word: i for i, word in enumerate(vocabulary.words)}
        rows = read_table(table)
        self.sets = {x.word: x.condition for x in rows if x.kind == "set"}
        names = [x.names for x in rows if _is_relation(x)] or [""]  # no axis is empty
        self.relations: dict[str, tuple[str, list[tuple[list[int], list[int], bool]]]]
        self.relations = {name: ("anywhere", []) for name in names}
        self.implied: dict[str, list] = {}
        self.subjects: dict[tuple[str, str], list] = {}
        self.numbers: dict[str, tuple[int, int]] = {}
        self.rows = [x for x in rows if x.kind != "set" and self.tokens(x.word)]
        for row in filter(_is_relation, rows):  # also those that others depend on
            self._read_relation(row)
        for row in self.rows:
            if match := NUMBER.fullmatch(row.condition):
                least = int(match[1])
                self.numbers[row.word] = least, MOST if match[2] else least
            elif is_implied(row):
                self._read_implied(row)
        facts = [
            *itertools.product(("one", "several"), self.categories),
            *(("implied", x) for x in self.implied),
            *(("relation", x) for x in self.relations),
            *(("number", x) for x in self.numbers),
            *(("object", x) for x in self.relations),
            *(("state", x) for x in STATES),
        ]
        self.facts = {x: i for i, x in enumerate(facts)}
        entries = [x for row in self.rows for x in self._entries(row)]
        self.entries = [*dict.fromkeys(entries)]

    def tokens(self, word: str) -> tuple[int, ...]:
        """Ids of one or two words; empty if the vocabulary lacks one of them."""
        words = re.sub("[()]", "", word).split()
        known = all(x in self.ids for x in words)
        return tuple(self.ids[x] for x in words) if known else ()

    def members(self, names: str, row: Row) -> list[int]:
        """The categories that a text of sets and categories names."""
        found: list[int] = []
        for name in names.split():
            category = name.replace("_", " ")
            if name == "*":
                found += range(len(self.categories))
            elif name in self.sets:
                found += self.members(self.sets[name], row)
            elif category in self.categories:
                found.append(self.categories.index(category))
            else:
                raise InputError(
                    f"{row.place}: {category!r} is neither a category nor a set of the "
                    "table."
                )
        return found

    def _read_relation(self, row):
        if match := BOXES.fullmatch(row.condition):
            names = match.groups()[1:]
            pair = *(self.members(x, row) for x in names), "*" in names
            geometry, pairs = self.relations[row.names]
            if pairs and geometry != match[1]:
                raise InputError(
                    f"{row.place}: boxes of {row.names!r} are {geometry} others above."
                )
            self.relations[row.names] = match[1], [*pairs, pair]
        elif match := SAID_OF.fullmatch(row.condition):
            self.subjects["relation", row.names] = self.members(match[1], row)
        elif row.condition:
            raise InputError(f"{row.place}: {row.condition!r} is no relation of boxes.")

    def _read_implied(self, row):
        alternatives = self.alternatives(row)
        self.implied.setdefault(row.word, []).extend(alternatives)
        if row.kind == "verb":
            match = SAID_OF.fullmatch(row.condition)
            subjects = self.members(match[1], row) if match else []
            firsts = [atoms[0] for atoms in alternatives if atoms]
            subjects += [x[0] if isinstance(x, tuple) else x for x in firsts]
            self.subjects.setdefault(("implied", row.word), []).extend(subjects)

    def alternatives(self, row: Row) -> list[tuple]:
        """The alternatives of the condition of an implied word, see `implied`."""
        if SAID_OF.fullmatch(row.condition):
            return [()]
        first, *rest = row.condition.split()
        if len(rest) == 2 and rest[0] in self.relations:
            names = self.members(first, row), rest[:1], self.members(rest[1], row)
            return [(triple,) for triple in itertools.product(*names)]
        parts = [self.members(x, row) for x in row.condition.split(" + ")]
        return [*itertools.product(*parts)]

    def _entries(self, row):
        tokens, facts = self.tokens(row.word), self._facts_of(row)
        if not {*facts} <= {*self.facts}:
            raise InputError(
                f"{row.place}: the condition {row.condition!r}, or what {row.word!r} "
                "names, is unknown."
            )
        begins = len(tokens) == 2 and "(" not in row.word
        leads = not NEXT.fullmatch(row.condition)
        return [Entry(tokens, begins, row.kind, x, leads) for x in facts]

    def _facts_of(self, row):
        """The facts of which each one admits the word of a row."""
        if row.kind in NOUNS:
            facts = [("one", row.names)] * (row.kind != "several")
            facts += [("several", row.names)] * (row.kind in ("several", "unchanged"))
            return [] if row.condition == "never" else facts
        if row.word in self.numbers:
            return [("number", row.word)]
        if _is_relation(row):
            return [("relation", row.names)]
        if is_implied(row):
            return [("implied", row.word)]
        if match := NEXT.fullmatch(row.condition):
            return [("implied" if match[1] in self.implied else "one", match[1])]
        if match := WITH_OBJECT.fullmatch(row.condition):
            return [("object", match[1])]
        is_article = row.kind in ARTICLES and not row.condition
        return [("state", row.kind if is_article else row.condition)]


def _is_relation(row):
    return row.kind in RELATIONS and row.names != ""


def is_implied(row: Row) -> bool:
    """Whether a row says what a word for no category needs."""
    needs = row.condition and not NEXT.fullmatch(row.condition)
    return row.kind in IMPLIED and bool(needs)
