import abc
from typing import Any

from jaxtyping import Float32, Int
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.rules import NEG_INF, token_log_probs
from keras_caption.decoding.search import (
    Search,
    batch_size,
    chosen_log_probs,
    is_hypothesis,
)
from keras_caption.text import BOS, EOS, PAD


class TokenByToken(Search):
    """Generates one sequence for each row by choosing one token at every step.

    Its values include `"log_probs"`, of the sequences, and `"last"`, their last tokens.
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
        return {
            "last": ops.full((rows,), BOS, "int32"),
            "tokens": ops.zeros((rows, self.options.max_length), "int32"),
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
        log_probs = token_log_probs(logits, self.options)
        scores = self.scores_of(log_probs, tokens, index, values)
        chosen = ops.cast(self.choose(scores, index, values), "int32")
        # All tokens may be forbidden: such a sequence ends, and has no log-probability.
        is_allowed = is_hypothesis(chosen_log_probs(scores, chosen))
        added = ops.where(is_allowed, chosen_log_probs(log_probs, chosen), NEG_INF)
        is_done = finished(last)
        continues = ops.logical_and(is_allowed, ops.logical_not(is_done))
        chosen = ops.where(continues, chosen, PAD)
        is_next = ops.arange(self.options.max_length) == index
        return {
            **values,
            "last": chosen,
            "tokens": ops.where(is_next, ops.expand_dims(chosen, 1), tokens),
            "log_probs": values["log_probs"] + ops.where(is_done, 0.0, added),
            "cache": state["cache"],
        }

    def results(self, values: dict[str, Any]) -> tuple[Any, Any]:
        exists = is_hypothesis(values["log_probs"])
        tokens = ops.where(ops.expand_dims(exists, 1), values["tokens"], PAD)
        return tokens, ops.where(exists, values["log_probs"], NEG_INF)

    def best_so_far(self, values: dict[str, Any]) -> Any:
        return values["tokens"]


def finished(last):
    """Returns which sequences with these last tokens are finished."""
    return ops.logical_or(last == EOS, last == PAD)  # PAD follows EOS
