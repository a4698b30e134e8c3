import abc
from typing import Any

from jaxtyping import Bool, Float, Float32, Int, Int32
from keras import ops, tree

from keras_caption.arguments import Tensor
from keras_caption.decoding.rules import NEG_INF, Step, choosing_scores
from keras_caption.settings.decoding import Decoding


class Search(abc.ABC):
    """A way to generate sequences, as steps of one token each.

    Between steps, a search keeps `values`, a nested structure of tensors of constant
    shapes, with `"tokens"`, the decoder's `"cache"` and `"per_example"` among them.

    Args:
        decoder: Has `start(memory, length) -> state` and
            `step(tokens, state, index) -> (logits, state)`.
        options: `Decoding`; of texts only those that `per_example` has as tokens.
        per_example: dict of tensors `(batch, ...)`, what differs from example to
            example: `"limits"`, int `(batch,)`, greatest numbers of tokens, EOS
            included; `"prefix"`, int `(batch, max_length)`, then PAD; `"forbidden"`,
            int `(batch, phrases, longest)`, after PAD; and in place of the options of
            these names, `"min_length"`, `"length_penalty"`, `"repetition_penalty"`,
            `"temperature"`, `"top_k"` and `"top_p"`, `(batch,)`; and `"evidence"`, a
            dict, what the decoder's `evidence` read of the examples.
    """

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        per_example: dict[str, Tensor] | None = None,
    ):
        self.decoder = decoder
        self.options = options
        self.per_example = per_example or {}

    @abc.abstractmethod
    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        """The values before the first step.

        Args:
            state: The decoder's, as `start` returned it.
        """

    @abc.abstractmethod
    def is_unfinished(self, values: dict[str, Any]) -> Bool[Tensor, ""]:
        """Whether there is another step to take, bool scalar."""

    @abc.abstractmethod
    def next_step(
        self, memory: Any, index: Int[Tensor, ""], values: dict[str, Any]
    ) -> Any:
        """The values after one more step.

        Args:
            memory: The part of the decoder's state that stays.
            index: int scalar, position of the token that is generated.
            values: dict, the values before.
        """

    @abc.abstractmethod
    def results(self, values: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Tokens and log-probabilities of what was generated."""

    @abc.abstractmethod
    def best_so_far(self, values: dict[str, Any]) -> Int32[Tensor, "batch max_length"]:
        """The tokens of the best sequence of each example, finished or not."""

    def start(self, encoded: Any) -> tuple[Any, dict[str, Any]]:
        """The decoder's memory of what it starts from, and the first values."""
        state = self.decoder.start(encoded, length=self.options.max_length)
        return state["memory"], self.begin(state)

    def run(self, encoded: Any) -> tuple[Tensor, Tensor]:
        """Takes all steps, in one graph.

        Args:
            encoded: What the decoder starts from.

        Returns:
            `results`.
        """
        memory, first = self.start(encoded)
        _, values = ops.while_loop(
            lambda index, values: self.is_unfinished(values),
            lambda index, values: (index + 1, self.next_step(memory, index, values)),
            (0, first),
            maximum_iterations=self.options.max_length,
        )
        return self.results(values)

    def scores_of(
        self, log_probs: Tensor, tokens: Tensor, index: Any, values: dict[str, Any]
    ) -> Tensor:
        """Scores that next tokens are chosen by, see `choosing_scores`."""
        found = values["per_example"].get("evidence")
        admissible = None
        if found is not None:
            admissible = self.decoder.evidence.admissible(tokens, index, found)
        step = Step(log_probs, tokens, index, admissible)
        return choosing_scores(step, self.options, values["per_example"])

    def option(self, name: str, values: dict[str, Any]) -> Any:
        """The value of an option, or the values of the rows."""
        return values["per_example"].get(name, getattr(self.options, name))


def is_hypothesis(scores: Float32[Tensor, "..."]) -> Any:
    """Which scores are those of sequences, not of free places or without a token."""
    return scores > NEG_INF / 2


def batch_size(state: dict[str, Any]) -> Any:
    """Number of rows of a decoder's state."""
    return ops.shape(tree.flatten(state["cache"])[0])[0]


def repeat_rows(values: Any, times: Any) -> Any:
    """Repeats the rows of all tensors, next to each other."""
    return tree.map_structure(lambda x: ops.repeat(x, times, axis=0), values)


def chosen_log_probs(
    log_probs: Float[Tensor, "... vocabulary_size"], tokens: Int[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """Log-probabilities of tokens.

    Args:
        log_probs: float `(..., vocabulary_size)`.
        tokens: int `(...)`.

    Returns:
        float `(...)`.
    """
    of_rows = ops.reshape(log_probs, (-1, log_probs.shape[-1]))
    chosen = take_tokens(of_rows, ops.reshape(tokens, (-1, 1)))
    return ops.reshape(chosen, ops.shape(tokens))


def take_tokens(
    values: Float[Tensor, "rows vocabulary_size"], tokens: Int[Tensor, "rows count"]
) -> Float[Tensor, "rows count"]:
    """Values of some tokens of each row, as `ops.take_along_axis` finds them.

    In TensorFlow that copies all values; this is one look-up in them.

    Args:
        values: float `(rows, vocabulary_size)`.
        tokens: int `(rows, count)`.

    Returns:
        float `(rows, count)`.
    """
    rows = ops.expand_dims(ops.arange(ops.shape(values)[0], dtype=tokens.dtype), 1)
    return ops.take(ops.reshape(values, (-1,)), rows * values.shape[-1] + tokens)
