from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.beam import Beam
from keras_caption.decoding.best_tokens import best_tokens
from keras_caption.decoding.rules import NEG_INF
from keras_caption.decoding.search import NextTokens
from keras_caption.decoding.take_by_row import take_by_row
from keras_caption.settings.decoding import Decoding
from keras_caption.text import EOS


class Required(NamedTuple):
    """Phrases that sequences must contain, see `required_phrases`.

    Attributes:
        tokens: int32 `(symbols - 1,)`, the distinct tokens of all phrases. They are the
            first symbols; the last symbol stands for every other token.
        progress: int32 `(phrases, states, symbols)`, a transition table: if a sequence
            ends with the first p tokens of a phrase, `progress[phrase, p, symbol]` is
            the number of tokens of the phrase that it ends with after the symbol. Once
            a phrase is complete, its state stays at its length.
    """

    tokens: Int32[Tensor, " symbols-1"]
    progress: Int32[Tensor, "phrases states symbols"]


class ConstrainedBeam(Beam):
    """Beam search for sequences that contain all required phrases.

    The progress of a hypothesis is the number of required tokens that it has matched.
    Each number has a bank of `beam_size` places of its own, so that hypotheses with
    much progress do not compete with those with little. A hypothesis may end only when
    all phrases are complete.

    Args:
        decoder, options, per_example, only_best: See `Beam`.
        required: `Required`.

    Reference:
        Hokamp and Liu, "Lexically Constrained Decoding for Sequence Generation Using
        Grid Beam Search", ACL 2017. There, a hypothesis starts a phrase and continues
        it; here, any tokens that complete a phrase count, also if phrases overlap.
    """

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        per_example: dict[str, Tensor] | None,
        required: Required,
        only_best: bool = False,
    ):
        super().__init__(decoder, options, per_example, only_best)
        self.required = required
        self.phrases, self.banks, self.symbols = required.progress.shape
        self.places = self.banks * self.width

    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        values = super().begin(state)
        beams = ops.shape(values["scores"])[0]
        shape = beams, self.places, self.phrases
        return {**values, "progress": ops.zeros(shape, "int32")}

    def extend(self, values: dict[str, Any], following: NextTokens) -> dict[str, Any]:
        # Candidates of a hypothesis: all tokens of phrases, and the `width` best other
        # tokens. Those lead it to one bank, which keeps no more than `width` of them.
        scores = following.scores.sum()
        size, tokens = scores.shape[-1], self.required.tokens
        all_tokens = ops.arange(size, dtype=tokens.dtype)
        in_phrases = ops.any(ops.expand_dims(all_tokens, 1) == tokens, axis=1)
        symbols = ops.arange(self.symbols)
        # Bank of each hypothesis after each symbol: (beams, places, symbols), then one
        # row for each place.
        banks = ops.sum(self._progress(values["progress"], symbols), axis=2)
        banks = ops.reshape(banks, (-1, self.symbols))
        # EOS is not required, so that it is the last symbol: too early before the last
        # bank.
        early = ops.logical_and(all_tokens == EOS, banks[:, -1:] < self.banks - 1)
        excluded = ops.logical_or(in_phrases, early)
        others = ops.where(excluded, NEG_INF, following.scores.all)
        count = min(self.width, size)
        best, best_ids = best_tokens(following.scores._replace(all=others), count)
        ids = ops.broadcast_to(tokens, (ops.shape(scores)[0], self.symbols - 1))
        ids = ops.concatenate([ids, best_ids], axis=1)
        scores = ops.concatenate([ops.take(scores, tokens, axis=1), best], axis=1)
        symbols = ops.minimum(ops.arange(self.symbols - 1 + count), self.symbols - 1)

        # === Best hypotheses of each bank, among the candidates of all places ===
        candidates = symbols.shape[0]
        flat = -1, self.places * candidates

        def totals(name, new):
            new = ops.reshape(new, (-1, self.places, candidates))
            return ops.reshape(ops.expand_dims(values[name], 2) + new, flat)

        scores = totals("scores", scores)
        banks = ops.reshape(ops.take(banks, symbols, axis=1), flat)
        best = [
            ops.top_k(ops.where(banks == number, scores, NEG_INF), self.width)
            for number in range(self.banks)
        ]
        chosen = ops.concatenate([ops.cast(x, "int32") for _, x in best], axis=1)
        log_probs = totals("log_probs", take_by_row(following.log_probs, ids))
        places = chosen // candidates
        progress = ops.take_along_axis(
            values["progress"], ops.expand_dims(places, 2), axis=1
        )
        symbols = ops.take(symbols, chosen % candidates, axis=0)
        return {
            "scores": ops.concatenate([x for x, _ in best], axis=1),
            "log_probs": take_by_row(log_probs, chosen),
            "progress": self._progress(progress, ops.expand_dims(symbols, 2))[..., 0],
            "added": take_by_row(ops.reshape(ids, flat), chosen),
            "from": places,
        }

    def _progress(self, progress, symbols):
        """Looks up the progress of phrases after one more token.

        Args:
            progress: int32 `(beams, places, phrases)`, before the token.
            symbols: int32 `(symbols,)`, or `(beams, places, 1)`.

        Returns:
            int32 `(beams, places, phrases, symbols)`.
        """
        # One look-up in a flat table: an index of three axes would need a gather of
        # pairs.
        phrases = ops.arange(self.phrases) * self.banks
        states = ops.expand_dims((phrases + progress) * self.symbols, 3)
        if len(symbols.shape) == 3:
            symbols = ops.expand_dims(symbols, 3)
        table = ops.reshape(self.required.progress, (-1,))
        return ops.take(table, states + symbols, axis=0)

    def is_complete(self, longer: dict[str, Any]) -> Any:
        return ops.sum(longer["progress"], axis=-1) == self.banks - 1


def required_phrases(phrases: Sequence[Sequence[int]]) -> Required:
    """Builds the transition table of phrases that sequences must contain.

    Each phrase has the states of the Knuth-Morris-Pratt algorithm.

    Args:
        phrases: Sequence of phrases, each a sequence of tokens.
    """
    phrases = [*map(tuple, phrases)]
    tokens = [*dict.fromkeys(token for phrase in phrases for token in phrase)]
    states = sum(map(len, phrases)) + 1
    table = np.zeros((len(phrases), states, len(tokens) + 1), "int32")
    for row, phrase in zip(table, phrases, strict=True):
        # A complete phrase stays complete, whatever follows.
        row[len(phrase) :] = len(phrase)
        for matched in range(len(phrase)):
            for token in {*phrase}:
                text = (*phrase[:matched], token)
                row[matched, tokens.index(token)] = next(
                    n
                    # The longest beginning of the phrase that the text ends with.
                    for n in range(len(text), -1, -1)
                    if text[len(text) - n :] == phrase[:n]
                )
    return Required(np.array(tokens, "int32"), table)
