"""Which tokens the facts about an image admit after others."""

import numpy as np
from jaxtyping import Bool, Float32, Int, Int32
from keras import ops

from keras_caption.apps.objects.evidence_rules import Entry, EvidenceRules
from keras_caption.apps.objects.evidence_table import END, START, UNKNOWN, followers
from keras_caption.base.arguments import Tensor
from keras_caption.text import EOS, PAD


class EvidenceGrammar:
    """Finds the tokens that facts admit after others.

    Args:
        rules: `EvidenceRules`, whose entries are the words.
    """

    def __init__(self, rules: EvidenceRules):
        phrases = [x for x in rules.entries if len(x.tokens) == 2]
        words = [x for x in rules.entries if len(x.tokens) == 1]
        words.append(Entry((EOS,), False, END, ("state", ""), False))
        facts = [rules.facts[x.fact] for x in (*phrases, *words)]
        self.fact = np.array(facts, "int32")
        self.size = len(rules.ids)
        pairs = [x.tokens for x in phrases] or [(PAD, PAD)]  # no axis is empty
        self.first, self.second = np.array(pairs, "int32").T
        self.places = {kind: i for i, kind in enumerate(followers())}
        self.kinds = self._kinds_of([*phrases, *words])
        self.agrees = _agreement(phrases)
        self.follows = np.array(
            [
                [x.begins and "name" in after for x in phrases]
                + [x.kind in after for x in words]
                for after in followers().values()
            ],
            "float32",
        )
        self.follows[:, : len(phrases)] *= self.agrees[:, : len(phrases)]
        self.starts = _one_hot([x.tokens[0] for x in (*phrases, *words)], self.size)
        self.completes = _one_hot(self.second, self.size)
        begins = [x.tokens[0] for x in phrases if x.begins]
        self.begins_name = np.isin(np.arange(self.size), begins)
        takes = [{"name"} <= x and not {"mass"} & x for x in followers().values()]
        self.takes_name = np.array(takes, "float32")[:, None]
        self.to_end = self._words_to_end()

    def __call__(
        self,
        tokens: Int32[Tensor, "rows length"],
        index: Int[Tensor, ""],
        facts: Float32[Tensor, "rows facts"],
    ) -> Bool[Tensor, "rows vocabulary_size"]:
        """Finds the tokens that may come next.

        Args:
            tokens: int32 `(rows, length)`, of which the first `index` are generated.
            index: int scalar.
            facts: float32 `(rows, facts)`, 1 for facts that hold, in the order of
                `EvidenceRules`.
        """
        last = ops.take(tokens, ops.maximum(index - 1, 0), axis=1)  # PAD at the start
        before = ops.take(tokens, ops.maximum(index - 2, 0), axis=1)
        kinds = ops.take(self.kinds, last, axis=0)
        kinds_before = ops.take(self.kinds, before, axis=0)
        holds = ops.take(facts, self.fact, axis=1)
        follows = ops.cast(ops.matmul(kinds, self.follows) > 0, "float32")
        words = ops.matmul(holds * follows, self.starts) > 0
        # "tennis" is a game, but after "a" the beginning of a name.
        is_name = ops.matmul(kinds_before, self.takes_name) > 0
        begun = ops.expand_dims(ops.take(self.begins_name, last), 1)
        words = ops.logical_and(words, ops.logical_not(ops.logical_and(begun, is_name)))
        agrees = ops.logical_and(
            ops.expand_dims(last, 1) == self.first,
            ops.matmul(kinds_before, self.agrees) > 0,
        )
        complete = holds[:, : len(self.first)] * ops.cast(agrees, "float32")
        words = ops.logical_or(words, ops.matmul(complete, self.completes) > 0)
        # The last position is that of EOS.
        fit = ops.logical_and(words, index + 1 + self.to_end < tokens.shape[1])
        return ops.where(ops.any(fit, axis=1, keepdims=True), fit, words)

    def _kinds_of(self, entries):
        """The kinds of each token, float32 `(vocabulary_size, kinds)`."""
        kinds = np.zeros((self.size, len(self.places)), "float32")
        kinds[PAD, self.places[START]] = 1.0
        for entry in entries:
            kinds[entry.tokens[-1], self.places[entry.kind]] = 1.0
        kinds[~kinds.any(axis=1), self.places[UNKNOWN]] = 1.0
        return kinds

    def _words_to_end(self):
        """The least number of words between each token and EOS, int32 `(size,)`.

        It is -1 for EOS, and 0 for tokens that the grammar does not know.
        """
        kinds = self.kinds[:, :-1] > 0  # not the last one, of unknown words
        known = kinds.any(axis=1)
        known[self.first] = True
        to_end = np.where(known, self.size, 0).astype("int32")
        to_end[EOS] = -1
        follows = [[x in after for x in followers()] for after in followers().values()]
        follows = np.array(follows)[:-1, :-1]
        while True:
            of_kind = np.where(kinds.T, to_end, self.size).min(axis=1)
            after = np.where(follows, of_kind, self.size).min(axis=1)
            shorter = np.where(kinds, 1 + after, self.size).min(axis=1)
            shorter = np.minimum(to_end, shorter)
            np.minimum.at(shorter, self.first, 1 + to_end[self.second])
            if (shorter == to_end).all():
                return to_end.astype("int32")
            to_end = shorter


def _agreement(phrases):
    """Whether the second word of phrases may come after a kind and the first word.

    Names take an article in the singular only: "a wine glass", "two wine glasses".

    Returns:
        float32 `(kinds, phrases)`.
    """
    agrees = np.zeros((len(followers()), max(len(phrases), 1)), "float32")
    is_article = np.isin([*followers()], ("a", "an"))
    for column, phrase in zip(agrees.T, phrases, strict=False):
        column[:] = {"one": is_article, "several": ~is_article}.get(phrase.fact[0], 1.0)
    return agrees


def _one_hot(tokens, size):
    return (np.asarray(tokens)[:, None] == np.arange(size)).astype("float32")
