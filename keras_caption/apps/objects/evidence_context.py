"""What a begun caption has named, and what it leads to."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int32
from keras import ops

from keras_caption.apps.objects.evidence_rules import EvidenceRules
from keras_caption.apps.objects.evidence_table import IMPLIED, NOUNS
from keras_caption.base.arguments import Tensor
from keras_caption.text import PAD

GOVERNORS = ("preposition", "transitive", "next", "with", "and")


class Context(NamedTuple):
    """What words say of those behind them.

    Attributes:
        subject: int32 `(rows,)`, the category that was named last, from 1.
        governor: int32 `(rows,)`, the last word that decides what the next noun may be,
            such as "on", "with" or "two": a relation, from 1, or a number behind these.
        several: bool `(rows, 1)`, whether the last noun is in the plural.
        unnamed: bool `(rows, 1 + names)`, names that have not been said, from 1.
    """

    subject: Int32[Tensor, " rows"]
    governor: Int32[Tensor, " rows"]
    several: Bool[Tensor, "rows 1"]
    unnamed: Bool[Tensor, "rows names"]


class EvidenceContext:
    """Finds what begun captions have named last.

    Args:
        rules: `EvidenceRules`.
    """

    def __init__(self, rules: EvidenceRules):
        size = len(rules.ids)
        self.categories, self.relations = len(rules.categories), len(rules.relations)
        named = [x for x in rules.rows if x.kind in (*NOUNS, *IMPLIED) and x.names]
        names = [*rules.categories, *(x.names for x in named)]
        self.names = [*dict.fromkeys(names)]
        self.name, self.plural, self.governor = np.zeros((3, size), "int32")
        phrases = {(PAD, PAD): 0}  # no axis is empty
        for row in named:
            tokens, name = rules.tokens(row.word), 1 + self.names.index(row.names)
            if len(tokens) == 2:
                phrases[tokens] = name
            else:
                self.name[tokens] = name
            if row.kind in ("several", "unchanged"):
                self.plural[tokens[-1]] = 2 if row.kind == "unchanged" else 1
        self.first, self.second = np.array([*phrases], "int32").T
        self.name_of_phrase = np.array([*phrases.values()], "int32")
        relations, numbers = [*rules.relations], [*rules.numbers]
        for row in rules.rows:
            if row.kind in GOVERNORS and row.names:
                self.governor[rules.tokens(row.word)] = 1 + relations.index(row.names)
            elif row.word in numbers:
                governor = 1 + len(relations) + numbers.index(row.word)
                self.governor[rules.tokens(row.word)] = governor
        # "of" is a relation only behind a noun, as in "a bowl of carrots".
        self.of = rules.ids.get("of", PAD)
        self.of_governor = 1 + relations.index("of") if "of" in relations else 0

    def __call__(self, tokens: Int32[Tensor, "rows length"]) -> Context:
        """Reads begun captions, after which tokens are PAD."""
        names = self._names(tokens)
        nouns = ops.where(names <= self.categories, names, 0)
        governors = ops.take(self.governor, tokens)
        behind_noun = ops.pad(nouns[:, :-1], [[0, 0], [1, 0]]) > 0
        is_of = ops.logical_and(tokens == self.of, behind_noun)
        governors = ops.where(is_of, self.of_governor, governors)
        numbers = ops.where(nouns > 0, 1 + ops.take(self.plural, tokens), 0)
        number = last_above_zero(numbers)  # 1 singular, 2 plural, 3 either
        counted = ops.any(governors > self.relations, axis=1)
        several = ops.logical_or(number == 2, ops.logical_and(number == 3, counted))
        places = ops.arange(1 + len(self.names))
        said = ops.any(ops.expand_dims(names, -1) == places, axis=1)
        unnamed = ops.logical_or(ops.logical_not(said), places == 0)
        return Context(
            last_above_zero(nouns),
            last_above_zero(governors),
            ops.expand_dims(several, 1),
            unnamed,
        )

    def _names(self, tokens):
        """What each token names, int32 `(rows, length)`, from 1; 0 for nothing."""
        before = ops.pad(tokens[:, :-1], [[0, 0], [1, 0]])
        is_phrase = ops.logical_and(
            ops.expand_dims(before, -1) == self.first,
            ops.expand_dims(tokens, -1) == self.second,
        )
        of_phrase = ops.max(ops.where(is_phrase, self.name_of_phrase, 0), axis=-1)
        return ops.where(of_phrase > 0, of_phrase, ops.take(self.name, tokens))


def last_above_zero(values: Int32[Tensor, "rows length"]) -> Int32[Tensor, " rows"]:
    """Returns the last value of each row that is not 0, or 0."""
    base = 1000  # more than any value, so that the maximum decides by the position
    places = ops.arange(values.shape[1], dtype="int32") * base
    return ops.max(ops.where(values > 0, values + places, 0), axis=1) % base
