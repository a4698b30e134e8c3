from typing import Any

from jaxtyping import Float32, Int, Int32
from keras import ops, tree

from keras_caption.arguments import Tensor
from keras_caption.decoding.options import Decoding
from keras_caption.decoding.rules import NEG_INF, choosing_scores, token_log_probs
from keras_caption.decoding.search import (
    Search,
    batch_size,
    chosen_log_probs,
    repeat_rows,
)
from keras_caption.text import BOS, EOS, PAD


def beam_search(
    decoder: Any,
    memory: Any,
    options: Decoding | None = None,
    limits: Int[Tensor, " batch"] | None = None,
) -> tuple[
    Int32[Tensor, "batch beam_size max_length"], Float32[Tensor, "batch beam_size"]
]:
    """Searches for the most probable sequences with a beam of hypotheses.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        options: `Decoding`; those of sampling are not read. Defaults to `Decoding()`.
        limits: int `(batch,)`, greatest numbers of tokens, EOS included, or `None`.

    Returns:
        Tokens, int32 `(batch, beam_size, max_length)`, from the first to
        EOS, then PAD, the best sequence first; and their log-probabilities, EOS
        included, never normalized, float32 `(batch, beam_size)`. If there are fewer
        sequences, the last are PAD only, their log-probability -1e9.
    """
    return BeamSearch(decoder, options or Decoding()).run(memory, limits)


class BeamSearch(Search):
    """Beam search, see `beam_search`.

    A finished hypothesis leaves its place to the next best one, and joins the best
    `beam_size` finished ones; the search ends once no unfinished hypothesis can join
    them any more. PAD and BOS are never chosen, nor UNK if not allowed. The memory is
    shared by the hypotheses of an example; only what the decoder keeps per sequence is
    reordered.

    Its values are, of `beam_size` unfinished hypotheses of each example, `"tokens"`,
    their `"scores"`, which they are ranked by, and `"log_probs"`; the same of the
    finished ones, `"done"`; and `"rows"`, those of the decoder's `"cache"` that the
    hypotheses continue.
    """

    def begin(self, state: dict[str, Any], limits: Any) -> dict[str, Any]:
        width, batch = self.options.beam_size, batch_size(state)
        only_first = ops.where(ops.arange(width) == 0, 0.0, NEG_INF)
        none = {
            "tokens": ops.zeros((batch, width, self.options.max_length), "int32"),
            "scores": ops.full((batch, width), NEG_INF, "float32"),
            "log_probs": ops.full((batch, width), NEG_INF, "float32"),
        }
        values = {
            "tokens": none["tokens"],
            "scores": ops.broadcast_to(only_first, (batch, width)),
            "log_probs": ops.zeros((batch, width), "float32"),
            "done": none,
            "rows": ops.arange(batch * width),
            "cache": repeat_rows(state["cache"], width),
        }
        if limits is not None:
            values["limits"] = ops.repeat(limits, width)
        return values

    def is_unfinished(self, values: dict[str, Any]) -> Any:
        longest = float(self.options.max_length)
        best = self._rank(ops.max(values["scores"], axis=1), longest)
        worst = ops.min(self._rank_done(values["done"]), axis=1)
        return ops.any(best > worst)

    def next_step(self, memory: Any, index: Any, values: dict[str, Any]) -> Any:
        width, length = self.options.beam_size, self.options.max_length
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
        scores = choosing_scores(
            log_probs, flat_tokens, index, self.options, values.get("limits")
        )

        # === The best hypotheses, one token longer ===
        # Those of an example are among the best tokens of each.
        per_row = min(width, log_probs.shape[-1])
        scores, added = ops.top_k(scores, per_row)
        log_probs = chosen_log_probs(ops.expand_dims(log_probs, 1), added)
        scores = ops.reshape(scores, (-1, width, per_row))
        scores = ops.expand_dims(values["scores"], 2) + scores
        log_probs = ops.reshape(log_probs, (-1, width, per_row))
        log_probs = ops.expand_dims(values["log_probs"], 2) + log_probs
        flat = -1, width * per_row
        scores, chosen = ops.top_k(ops.reshape(scores, flat), width)
        chosen = ops.cast(chosen, "int32")
        log_probs = ops.take_along_axis(ops.reshape(log_probs, flat), chosen, axis=1)
        added = ops.reshape(ops.cast(added, "int32"), flat)
        added = ops.take_along_axis(added, chosen, axis=1)
        first_rows = ops.expand_dims(ops.arange(ops.shape(chosen)[0]) * width, 1)
        rows = ops.reshape(chosen // per_row + first_rows, (-1,))
        tokens = ops.take(flat_tokens, rows, axis=0)
        tokens = ops.reshape(tokens, ops.shape(values["tokens"]))
        tokens = ops.where(
            ops.arange(length) == index, ops.expand_dims(added, 2), tokens
        )

        # === Finished hypotheses leave the beam, and compete with those before ===
        ends = ops.logical_or(added == EOS, index == length - 1)
        ended = ops.where(ends, scores, NEG_INF)
        done = self._best_of(
            values["done"], {"tokens": tokens, "scores": ended, "log_probs": log_probs}
        )
        return {
            **values,
            "tokens": tokens,
            "scores": ops.where(ends, NEG_INF, scores),
            "log_probs": log_probs,
            "done": done,
            "rows": rows,
            "cache": state["cache"],
        }

    def results(self, values: dict[str, Any]) -> tuple[Any, Any]:
        done = values["done"]
        is_finished = is_hypothesis(done["scores"])
        tokens = ops.where(ops.expand_dims(is_finished, 2), done["tokens"], PAD)
        return tokens, ops.where(is_finished, done["log_probs"], NEG_INF)

    def _best_of(self, done, ended):
        """The best `beam_size` of two lots of finished hypotheses."""
        both = {n: ops.concatenate([done[n], ended[n]], axis=1) for n in done}
        best = ops.top_k(self._rank_done(both), self.options.beam_size)[1]
        return {
            "tokens": ops.take_along_axis(
                both["tokens"], ops.expand_dims(best, 2), axis=1
            ),
            "scores": ops.take_along_axis(both["scores"], best, axis=1),
            "log_probs": ops.take_along_axis(both["log_probs"], best, axis=1),
        }

    def _rank_done(self, done):
        lengths = ops.sum(ops.cast(done["tokens"] != PAD, "float32"), axis=-1)
        return self._rank(done["scores"], lengths)

    def _rank(self, scores, lengths):
        offset = self.options.length_offset
        penalty = ((offset + lengths) / (offset + 1.0)) ** self.options.length_penalty
        return scores / ops.maximum(penalty, 1e-9)  # free places have no length


def is_hypothesis(scores: Any) -> Any:
    """Which scores of a beam are those of sequences, not of free places."""
    return scores > NEG_INF / 2
