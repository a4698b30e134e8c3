from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int32
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.decoding.beam import Beam
from keras_caption.decoding.best_tokens import best_tokens
from keras_caption.decoding.rules import NEG_INF
from keras_caption.decoding.search import take_tokens
from keras_caption.settings.decoding import Decoding
from keras_caption.text import EOS


class ConstrainedBeam(Beam):
    """Beam search for sequences that have all of some phrases.

    There is a bank of `beam_size` places for each number of the phrases' tokens that a
    hypothesis can have, so that those with many never compete with those with few.
    Only hypotheses with all of them end.

    Args:
        decoder, options, per_example: Of `Search`.
        required: int32 `(phrases, tokens + 1, vocabulary_size)`, see `progress_table`.

    Reference:
        Hokamp and Liu, "Lexically Constrained Decoding for Sequence Generation Using
        Grid Beam Search", ACL 2017. There a phrase is begun and then continued; here
        any tokens that complete it count, as of one phrase within another.
    """

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        per_example: dict[str, Tensor] | None,
        required: Int32[Tensor, "phrases states vocabulary_size"],
    ):
        super().__init__(decoder, options, per_example)
        self.required = required
        self.banks = required.shape[1]
        self.places = self.banks * self.width

    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        values = super().begin(state)
        beams = ops.shape(values["scores"])[0]
        shape = beams, self.places, self.required.shape[0]
        return {**values, "progress": ops.zeros(shape, "int32")}

    def extend(
        self, values: dict[str, Any], scores: Any, log_probs: Any
    ) -> dict[str, Any]:
        size = scores.shape[-1]
        flat = -1, self.places * size

        def totals(name, new):
            new = ops.reshape(new, (-1, self.places, size))
            return ops.reshape(ops.expand_dims(values[name], 2) + new, flat)

        progress = [  # of each phrase, by all tokens
            ops.reshape(ops.take(table, values["progress"][..., i], axis=0), flat)
            for i, table in enumerate(ops.unstack(self.required, axis=0))
        ]
        bank = sum(progress)
        is_end = ops.tile(ops.arange(size) == EOS, [self.places])
        early = ops.logical_and(is_end, bank < self.banks - 1)
        scores = ops.where(early, NEG_INF, totals("scores", scores))
        best = [
            best_tokens(ops.where(bank == number, scores, NEG_INF), self.width)
            for number in range(self.banks)
        ]
        chosen = ops.concatenate([x for _, x in best], axis=1)  # of all places

        def take(x):
            return take_tokens(x, chosen)

        return {
            "scores": ops.concatenate([x for x, _ in best], axis=1),
            "log_probs": take(totals("log_probs", log_probs)),
            "progress": ops.stack([take(x) for x in progress], axis=-1),
            "added": chosen % size,
            "from": chosen // size,
        }

    def is_complete(self, longer: dict[str, Any]) -> Any:
        return ops.sum(longer["progress"], axis=-1) == self.banks - 1


def progress_table(phrases: Sequence[Sequence[int]], vocabulary_size: int) -> Any:
    """How far each phrase has come after each token.

    Args:
        phrases: Sequence of sequences of int, tokens.
        vocabulary_size: int, number of tokens.

    Returns:
        int32 `(phrases, tokens + 1, vocabulary_size)`, of all phrases' tokens: of a
        phrase of whose tokens the first p end a sequence, the number of those that end
        it after one more token; all of them, once the phrase has come.
    """
    tokens = sum(map(len, phrases))
    table = np.zeros((len(phrases), tokens + 1, vocabulary_size), "int32")
    for row, phrase in zip(table, map(tuple, phrases), strict=True):
        row[len(phrase) :] = len(phrase)
        for done in range(len(phrase)):
            for token in {*phrase}:
                text = (*phrase[:done], token)
                row[done, token] = next(
                    n
                    for n in range(len(text), -1, -1)
                    if text[len(text) - n :] == phrase[:n]
                )
    return table
