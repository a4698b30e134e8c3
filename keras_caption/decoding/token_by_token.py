import abc
from typing import Any

from jaxtyping import Float32, Int
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.rules import NEG_INF
from keras_caption.decoding.search import (
    Search,
    batch_size,
    choose_rows,
    chosen_log_probs,
    is_hypothesis,
)
from keras_caption.text import BOS, EOS, PAD


class TokenByToken(Search):
    """Generates one sequence for each row by choosing one token at every step.

    Its values include `"log_probs"`, of the sequences; `"last"`, their last tokens;
    and, with hooks, `"last_resort"`, a dict of `"tokens"` and `"log_probs"` of the
    longest sequences that could have ended: the results of those that come to where no
    token may follow.
    """

    @abc.abstractmethod
    def choose(
        self,
        scores: Float32[Tensor, "rows vocabulary_size"],
        index: Int[Tensor, ""],
        values: dict[str, Any],
    ) -> Int[Tensor, " rows"]:
        """Chooses tokens.

        Args:
            scores: float32 `(rows, vocabulary_size)`, see `choosing_scores`.
            index: int scalar, position of the tokens.
            values: dict, the search's values.

        Returns:
            int `(rows,)`.
        """

    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        rows = batch_size(state)
        tokens = ops.zeros((rows, self.options.max_length), "int32")
        none = {"tokens": tokens, "log_probs": ops.full((rows,), NEG_INF)}
        return {
            **({"last_resort": none} if "hooks" in self.per_example else {}),
            "last": ops.full((rows,), BOS, "int32"),
            "tokens": tokens,
            "log_probs": ops.zeros((rows,), "float32"),
            "per_example": self.per_example,
            "cache": state["cache"],
        }

    def unfinished(self, values: dict[str, Any]) -> Any:
        return ops.logical_not(finished(values["last"]))

    def next_step(self, memory: Any, index: Any, values: dict[str, Any]) -> Any:
        last, tokens = values["last"], values["tokens"]
        state = {"memory": memory, "cache": values["cache"]}
        logits, state = self.decoder.step(last, state, index)
        following = self.next_tokens(logits, tokens, index, values)
        scores, log_probs = following.scores.sum(), following.log_probs
        chosen = ops.cast(self.choose(scores, index, values), "int32")
        # All tokens may be forbidden: such a sequence ends, and has no log-probability.
        is_allowed = is_hypothesis(chosen_log_probs(scores, chosen))
        added = chosen_log_probs(log_probs, chosen) - following.constant
        added = ops.where(is_allowed, added, NEG_INF)
        is_done = finished(last)
        unfinished = ops.logical_not(is_done)
        continues = ops.logical_and(is_allowed, unfinished)
        chosen = ops.where(continues, chosen, PAD)
        is_next = ops.arange(self.options.max_length) == index
        more = {}
        if "last_resort" in values:
            could_end = ops.logical_and(is_hypothesis(scores[:, EOS]), unfinished)
            ended = {
                "tokens": ops.where(is_next, EOS, tokens),
                "log_probs": values["log_probs"]
                + log_probs[:, EOS]
                - following.constant,
            }
            more["last_resort"] = choose_rows(could_end, ended, values["last_resort"])
        return {
            **values,
            **more,
            "last": chosen,
            "tokens": ops.where(is_next, ops.expand_dims(chosen, 1), tokens),
            "log_probs": values["log_probs"] + ops.where(is_done, 0.0, added),
            "cache": state["cache"],
        }

    def results(self, values: dict[str, Any]) -> tuple[Any, Any]:
        found = self._found(values)
        exists = is_hypothesis(found["log_probs"])
        none = {
            "tokens": ops.full_like(found["tokens"], PAD),
            "log_probs": ops.full_like(found["log_probs"], NEG_INF),
        }
        found = choose_rows(exists, found, none)
        return found["tokens"], found["log_probs"]

    def best_so_far(self, values: dict[str, Any]) -> Any:
        return self._found(values)["tokens"]

    def _found(self, values):
        """The sequences, or the last resort of those that no token may follow."""
        own = {name: values[name] for name in ("tokens", "log_probs")}
        if "last_resort" not in values:
            return own
        exists = is_hypothesis(own["log_probs"])
        return choose_rows(exists, own, values["last_resort"])


def finished(last):
    """Returns which sequences with these last tokens are finished."""
    return ops.logical_or(last == EOS, last == PAD)  # PAD follows EOS
