from typing import Any

from keras import ops, tree

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.best_tokens import best_tokens
from keras_caption.decoding.rules import NEG_INF
from keras_caption.decoding.search import (
    NextTokens,
    Search,
    batch_size,
    choose_rows,
    is_hypothesis,
    repeat_rows,
)
from keras_caption.decoding.take_by_row import take_by_row
from keras_caption.layers.transformer_decoder_block import SharedCache
from keras_caption.settings.decoding import Decoding
from keras_caption.text import BOS, EOS, PAD

# Hypotheses of a beam that share a cache, at most: each attends to the masked positions
# of all others.
MOST_PLACES = 16


class Beam(Search):
    """Beam search, see `keras_caption.decoding.beam_search`.

    A finished hypothesis leaves its place in the beam and joins the best finished
    hypotheses. The search ends once no unfinished hypothesis can become one of them,
    or, if only the best is asked for, can become the best.
    PAD and BOS are never chosen, nor UNK unless it is allowed. The hypotheses of an
    example share its memory; only the decoder's cache is reordered. The hypotheses of
    a beam share what is a `SharedCache`, of which only the ancestors are reordered.

    An example has `groups` beams; each beam is a row of the tensors in `values`:

    - `"tokens"`, `"scores"` (the ranking) and `"log_probs"` of the `places` unfinished
      hypotheses of each beam;
    - `"done"`, a dict of the same three for the `width` best finished hypotheses;
    - `"from"`, the places whose rows of the decoder's `"cache"` they continue;
    - `"last_resort"`, with hooks, a dict of the best hypothesis that could have ended:
      the result of a beam whose hypotheses have all come to where no token may follow.

    Args:
        decoder, options, per_example: See `Search`.
        only_best: bool, whether only the first hypothesis of each example is asked
            for. The others may then be worse than a whole search's.
    """

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        per_example: dict[str, Tensor] | None = None,
        only_best: bool = False,
    ):
        super().__init__(decoder, options, per_example)
        self.only_best = only_best
        self.groups = options.groups
        self.width = self.places = options.beam_size // options.groups

    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        beams, length = batch_size(state) * self.groups, self.options.max_length
        # All places hold the empty hypothesis at first: only one may be continued, or
        # the beam would hold copies.
        only_first = ops.where(ops.arange(self.places) == 0, 0.0, NEG_INF)
        with_hooks = "hooks" in self.per_example
        last_resort = {"last_resort": no_hypotheses(beams, 1, length)}
        return {
            **(last_resort if with_hooks else {}),
            "tokens": ops.zeros((beams, self.places, length), "int32"),
            "scores": ops.broadcast_to(only_first, (beams, self.places)),
            "log_probs": ops.zeros((beams, self.places), "float32"),
            "done": no_hypotheses(beams, self.width, length),
            "from": ops.broadcast_to(
                ops.arange(self.places, dtype="int32"), (beams, self.places)
            ),
            "per_example": repeat_rows(self.per_example, self.groups * self.places),
            "cache": self._map_cache(
                lambda x: x.start_beams(self.groups, self.places),
                lambda x: repeat_rows(x, self.groups * self.places),
                state["cache"],
            ),
        }

    def unfinished(self, values: dict[str, Any]) -> Any:
        # An upper bound of the final ranks of unfinished hypotheses: scores only fall,
        # and the penalty of lengths is greatest at the greatest length.
        longest = float(self.options.max_length)
        best = self._rank(ops.max(values["scores"], axis=1), longest, values)
        least = ops.max if self.only_best else ops.min
        worst = least(self._rank_all(values["done"], values), axis=1)
        return best > worst

    def next_step(self, memory: Any, index: Any, values: dict[str, Any]) -> Any:
        length = self.options.max_length
        # === Probabilities of the next token ===
        flat_tokens = ops.reshape(values["tokens"], (-1, length))
        last = ops.take(flat_tokens, ops.maximum(index - 1, 0), axis=1)
        last = ops.where(index == 0, BOS, last)
        # The cache is reordered right before `step` writes to it, when no other tensor
        # holds it.
        places = values["from"]
        cache = self._map_cache(
            lambda x: x._replace(ancestors=take_by_row(x.ancestors, places)),
            lambda x: self._reorder(x, places),
            values["cache"],
        )
        state = {"memory": memory, "cache": cache}
        logits, state = self.decoder.step(last, state, index)
        following = self.next_tokens(logits, flat_tokens, index, values)

        # === Best hypotheses, one token longer ===
        # The constant that all next tokens lack is the hypothesis's.
        constant = ops.reshape(following.constant, ops.shape(values["scores"]))
        before = {
            **values,
            "scores": values["scores"] - constant,
            "log_probs": values["log_probs"] - constant,
        }
        longer = self.extend(before, following)
        tokens = take_by_row(values["tokens"], longer["from"])
        added = longer.pop("added")
        tokens = ops.where(
            ops.arange(length) == index, ops.expand_dims(added, 2), tokens
        )

        # === Finished hypotheses compete with those finished before ===
        # At the last position a hypothesis ends without EOS.
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
        both = concatenate(values["done"], ended)
        if "last_resort" in values:
            ending = self._ending_now(before, following, index)
            last = self._keep_best(
                concatenate(values["last_resort"], ending), 1, values
            )
            longer["last_resort"] = last
        return {
            **values,
            **longer,
            "tokens": tokens,
            "scores": ops.where(ends, NEG_INF, longer["scores"]),
            "done": self._keep_best(both, self.width, values),
            "cache": state["cache"],
        }

    def _ending_now(self, values, following, index):
        """Returns the unfinished hypotheses, each with EOS behind it."""
        at_end = ops.arange(self.options.max_length) == index
        shape = ops.shape(values["scores"])
        scores = following.scores.all[:, EOS] + following.scores.special[:, EOS]
        log_probs = following.log_probs[:, EOS]
        ended = {
            "tokens": ops.where(at_end, EOS, values["tokens"]),
            "scores": values["scores"] + ops.reshape(scores, shape),
            "log_probs": values["log_probs"] + ops.reshape(log_probs, shape),
        }
        is_complete = ops.logical_and(
            self.is_complete(values), is_hypothesis(ended["scores"])
        )
        return {**ended, "scores": ops.where(is_complete, ended["scores"], NEG_INF)}

    def _map_cache(self, shared, reordered, cache):
        """Applies a function to caches that beams share, another to other tensors."""

        def apply(x):
            if isinstance(x, SharedCache) and self.places <= MOST_PLACES:
                return shared(x)
            return None if tree.is_nested(x) else reordered(x)

        return tree.traverse(apply, cache)

    def _reorder(self, rows, places):
        """Reorders the rows of each beam, `(beams * places, ...)`."""
        rest = ops.shape(rows)[1:]
        by_beam = ops.reshape(rows, (-1, self.places, *rest))
        return ops.reshape(take_by_row(by_beam, places), (-1, *rest))

    def extend(self, values: dict[str, Any], following: NextTokens) -> dict[str, Any]:
        """Extends the best hypotheses of each beam by a token.

        Args:
            values: dict, the search's values before this step, the constant that
                `following` lacks subtracted.
            following: `NextTokens`, one row for each place.

        Returns:
            dict of `scores`, `log_probs`, `added` (the next token) and `from` (the
            place of the hypothesis that it extends), each `(beams, places)`.
        """
        # The best hypotheses of a beam use the `width` best tokens of a place at most.
        width = self.width
        per_row = min(width, following.log_probs.shape[-1])
        scores, added = best_tokens(following.scores, per_row)
        log_probs = take_by_row(following.log_probs, added)
        scores = ops.reshape(scores, (-1, width, per_row))  # (beams, places, tokens)
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
            "from": chosen // per_row,  # a flat index counts the tokens of all places
        }

    def is_complete(self, longer: dict[str, Any]) -> Any:
        """Returns which hypotheses may end, bool or `True`."""
        return True

    def results(self, values: dict[str, Any]) -> tuple[Any, Any]:
        done = values["done"]
        if "last_resort" in values:
            done = self._with_last_resort(done, values["last_resort"])
        if self.groups > 1:
            done = self._merge_beams(done, values)
        is_finished = is_hypothesis(done["scores"])
        tokens = ops.where(ops.expand_dims(is_finished, 2), done["tokens"], PAD)
        return tokens, ops.where(is_finished, done["log_probs"], NEG_INF)

    @staticmethod
    def _with_last_resort(done, last_resort):
        """Puts the last resort first where no hypothesis of a beam is finished."""
        is_finished = ops.any(is_hypothesis(done["scores"]), axis=1)
        best = {name: x[:, :1] for name, x in done.items()}
        best = choose_rows(is_finished, best, last_resort)
        return concatenate(best, {name: x[:, 1:] for name, x in done.items()})

    def best_so_far(self, values: dict[str, Any]) -> Any:
        unfinished = {name: values[name] for name in values["done"]}
        both = self._merge_beams(concatenate(values["done"], unfinished), values)
        return both["tokens"][:, 0]

    def _merge_beams(self, hypotheses, values):
        """Returns the best hypotheses among all beams of each example, each once."""
        count = self.groups * hypotheses["scores"].shape[1]
        together = {
            name: ops.reshape(x, (-1, count, *x.shape[2:]))
            for name, x in hypotheses.items()
        }
        if self.groups > 1:
            together["scores"] = without_copies(together["tokens"], together["scores"])
        return self._keep_best(together, self.options.beam_size, values)

    def _keep_best(self, hypotheses, count, values):
        """Returns the `count` best hypotheses of each row."""
        best = ops.top_k(self._rank_all(hypotheses, values), count)[1]
        return {
            "tokens": ops.take_along_axis(
                hypotheses["tokens"], ops.expand_dims(best, 2), axis=1
            ),
            "scores": ops.take_along_axis(hypotheses["scores"], best, axis=1),
            "log_probs": ops.take_along_axis(hypotheses["log_probs"], best, axis=1),
        }

    def _rank_all(self, hypotheses, values):
        """Returns the ranks of hypotheses, by score and number of tokens."""
        lengths = ops.sum(ops.cast(hypotheses["tokens"] != PAD, "float32"), axis=-1)
        return self._rank(hypotheses["scores"], lengths, values)

    def _rank(self, scores, lengths, values):
        """Divides scores by a penalty of lengths, that of Wu et al., 2016."""
        power = self.option("length_penalty", values)
        if "length_penalty" in values["per_example"]:  # a row for each place
            power = ops.reshape(power, (ops.shape(scores)[0], -1))[:, :1]
            power = ops.reshape(power, (-1, *[1] * (len(scores.shape) - 1)))
        offset = self.options.length_offset
        penalty = ((offset + lengths) / (offset + 1.0)) ** power
        return scores / ops.maximum(penalty, 1e-9)  # free places have length 0


def no_hypotheses(beams: Any, count: int, length: int) -> dict[str, Any]:
    """Returns free places of `count` hypotheses of each beam."""
    return {
        "tokens": ops.zeros((beams, count, length), "int32"),
        "scores": ops.full((beams, count), NEG_INF, "float32"),
        "log_probs": ops.full((beams, count), NEG_INF, "float32"),
    }


def concatenate(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Concatenates two sets of hypotheses of the same beams."""
    return {n: ops.concatenate([first[n], second[n]], axis=1) for n in first}


def without_copies(tokens: Any, scores: Any) -> Any:
    """Returns scores without those of hypotheses that an earlier place has too.

    Args:
        tokens: int `(examples, places, length)`.
        scores: float `(examples, places)`.
    """
    places = ops.arange(scores.shape[1])
    for place in range(scores.shape[1] - 1):
        same = ops.all(tokens == tokens[:, place : place + 1], axis=2)
        exists = is_hypothesis(scores[:, place : place + 1])
        is_copy = ops.logical_and(ops.logical_and(same, exists), places > place)
        scores = ops.where(is_copy, NEG_INF, scores)
    return scores
