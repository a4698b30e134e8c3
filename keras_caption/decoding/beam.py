from typing import Any

from keras import ops, tree

from keras_caption.arguments import Tensor
from keras_caption.decoding.best_tokens import best_tokens
from keras_caption.decoding.rules import NEG_INF, token_log_probs
from keras_caption.decoding.search import (
    Search,
    batch_size,
    is_hypothesis,
    repeat_rows,
    take_tokens,
)
from keras_caption.settings.decoding import Decoding
from keras_caption.text import BOS, EOS, PAD


class Beam(Search):
    """Beam search, see `keras_caption.decoding.beam_search`.

    A finished hypothesis leaves its place to the next best one, and joins the best
    finished ones; the search ends once no unfinished hypothesis can join them any
    more. PAD and BOS are never chosen, nor UNK if not allowed. The memory is shared by
    the hypotheses of an example; only what the decoder keeps per sequence is reordered.

    An example has `groups` beams, each of them a row of the tensors in `values`. These
    are, of `places` unfinished hypotheses of each beam, `"tokens"`, their
    `"scores"`, which they are ranked by, and `"log_probs"`; the same of the `width`
    best finished ones, `"done"`; and `"rows"`, those of the decoder's `"cache"` that
    the hypotheses continue.
    """

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        per_example: dict[str, Tensor] | None = None,
    ):
        super().__init__(decoder, options, per_example)
        self.groups = options.groups
        self.width = self.places = options.beam_size // options.groups

    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        beams, length = batch_size(state) * self.groups, self.options.max_length
        only_first = ops.where(ops.arange(self.places) == 0, 0.0, NEG_INF)
        return {
            "tokens": ops.zeros((beams, self.places, length), "int32"),
            "scores": ops.broadcast_to(only_first, (beams, self.places)),
            "log_probs": ops.zeros((beams, self.places), "float32"),
            "done": {
                "tokens": ops.zeros((beams, self.width, length), "int32"),
                "scores": ops.full((beams, self.width), NEG_INF, "float32"),
                "log_probs": ops.full((beams, self.width), NEG_INF, "float32"),
            },
            "rows": ops.arange(beams * self.places),
            "per_example": repeat_rows(self.per_example, self.groups * self.places),
            "cache": repeat_rows(state["cache"], self.groups * self.places),
        }

    def is_unfinished(self, values: dict[str, Any]) -> Any:
        longest = float(self.options.max_length)
        best = self._rank(ops.max(values["scores"], axis=1), longest, values)
        worst = ops.min(self._rank_all(values["done"], values), axis=1)
        return ops.any(best > worst)

    def next_step(self, memory: Any, index: Any, values: dict[str, Any]) -> Any:
        length = self.options.max_length
        # === Probabilities of the next token ===
        # The cache is reordered right before it is written to: nothing else holds it.
        rows = values["rows"]
        cache = tree.map_structure(lambda x: ops.take(x, rows, axis=0), values["cache"])
        flat_tokens = ops.reshape(values["tokens"], (-1, length))
        last = ops.take(flat_tokens, ops.maximum(index - 1, 0), axis=1)
        last = ops.where(index == 0, BOS, last)
        state = {"memory": memory, "cache": cache}
        logits, state = self.decoder.step(last, state, index)
        log_probs = token_log_probs(logits, self.options)
        scores = self.scores_of(log_probs, flat_tokens, index, values)

        # === The best hypotheses, one token longer ===
        longer = self.extend(values, scores, log_probs)
        first_rows = ops.arange(ops.shape(longer["from"])[0]) * self.places
        rows = ops.reshape(longer.pop("from") + ops.expand_dims(first_rows, 1), (-1,))
        tokens = ops.take(flat_tokens, rows, axis=0)
        tokens = ops.reshape(tokens, ops.shape(values["tokens"]))
        added = longer.pop("added")
        tokens = ops.where(
            ops.arange(length) == index, ops.expand_dims(added, 2), tokens
        )

        # === Finished hypotheses leave the beam, and compete with those before ===
        ends = ops.logical_or(added == EOS, index == length - 1)
        ended = {
            "tokens": tokens,
            "scores": ops.where(
                ops.logical_and(ends, self.is_complete(longer)),
                longer["scores"],
                NEG_INF,
            ),
            "log_probs": longer["log_probs"],
        }
        both = side_by_side(values["done"], ended)
        return {
            **values,
            **longer,
            "tokens": tokens,
            "scores": ops.where(ends, NEG_INF, longer["scores"]),
            "done": self._best_of(both, self.width, values),
            "rows": rows,
            "cache": state["cache"],
        }

    def extend(
        self, values: dict[str, Any], scores: Any, log_probs: Any
    ) -> dict[str, Any]:
        """The best hypotheses of each beam, one token longer.

        Args:
            values: dict, those before.
            scores, log_probs: float32 `(beams * places, vocabulary_size)`, of the next
                token.

        Returns:
            dict of `scores`, `log_probs`, `added`, the token, and `from`, the place of
            the hypothesis before, each `(beams, places)`.
        """
        # Those of a beam are among the best tokens of each hypothesis before.
        width = self.width
        per_row = min(width, log_probs.shape[-1])
        scores, added = best_tokens(scores, per_row)
        log_probs = take_tokens(log_probs, added)
        scores = ops.reshape(scores, (-1, width, per_row))
        scores = ops.expand_dims(values["scores"], 2) + scores
        log_probs = ops.reshape(log_probs, (-1, width, per_row))
        log_probs = ops.expand_dims(values["log_probs"], 2) + log_probs
        flat = -1, width * per_row
        scores, chosen = ops.top_k(ops.reshape(scores, flat), width)
        chosen = ops.cast(chosen, "int32")
        log_probs = ops.take_along_axis(ops.reshape(log_probs, flat), chosen, axis=1)
        added = ops.reshape(added, flat)
        return {
            "scores": scores,
            "log_probs": log_probs,
            "added": ops.take_along_axis(added, chosen, axis=1),
            "from": chosen // per_row,
        }

    def is_complete(self, longer: dict[str, Any]) -> Any:
        """Whether hypotheses that `extend` returned may end, bool."""
        return True

    def results(self, values: dict[str, Any]) -> tuple[Any, Any]:
        done = values["done"]
        if self.groups > 1:
            done = self._of_examples(done, values)
        is_finished = is_hypothesis(done["scores"])
        tokens = ops.where(ops.expand_dims(is_finished, 2), done["tokens"], PAD)
        return tokens, ops.where(is_finished, done["log_probs"], NEG_INF)

    def best_so_far(self, values: dict[str, Any]) -> Any:
        unfinished = {name: values[name] for name in values["done"]}
        both = self._of_examples(side_by_side(values["done"], unfinished), values)
        return both["tokens"][:, 0]

    def _of_examples(self, hypotheses, values):
        """The best hypotheses of all beams of each example."""
        count = self.groups * hypotheses["scores"].shape[1]
        together = {
            name: ops.reshape(x, (-1, count, *x.shape[2:]))
            for name, x in hypotheses.items()
        }
        return self._best_of(together, self.options.beam_size, values)

    def _best_of(self, hypotheses, count, values):
        """The best `count` hypotheses of each row."""
        best = ops.top_k(self._rank_all(hypotheses, values), count)[1]
        return {
            "tokens": ops.take_along_axis(
                hypotheses["tokens"], ops.expand_dims(best, 2), axis=1
            ),
            "scores": ops.take_along_axis(hypotheses["scores"], best, axis=1),
            "log_probs": ops.take_along_axis(hypotheses["log_probs"], best, axis=1),
        }

    def _rank_all(self, hypotheses, values):
        lengths = ops.sum(ops.cast(hypotheses["tokens"] != PAD, "float32"), axis=-1)
        return self._rank(hypotheses["scores"], lengths, values)

    def _rank(self, scores, lengths, values):
        power = self.option("length_penalty", values)
        if "length_penalty" in values["per_example"]:  # a row for each place
            power = ops.reshape(power, (ops.shape(scores)[0], -1))[:, :1]
            power = ops.reshape(power, (-1, *[1] * (len(scores.shape) - 1)))
        offset = self.options.length_offset
        penalty = ((offset + lengths) / (offset + 1.0)) ** power
        return scores / ops.maximum(penalty, 1e-9)  # free places have no length


def side_by_side(some: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Hypotheses of two lots as one, of the same beams."""
    return {n: ops.concatenate([some[n], others[n]], axis=1) for n in some}
