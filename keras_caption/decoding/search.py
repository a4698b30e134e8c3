import abc
from typing import Any

from jaxtyping import Bool, Float, Int
from keras import ops, tree

from keras_caption.arguments import Tensor
from keras_caption.decoding.options import Decoding


class Search(abc.ABC):
    """A way to generate sequences, as steps of one token each.

    Between steps, a search keeps `values`, a nested structure of tensors of constant
    shapes, with `"tokens"` and the decoder's `"cache"` among them.

    Args:
        decoder: Has `start(memory, length) -> state` and
            `step(tokens, state, index) -> (logits, state)`.
        options: `Decoding`.
    """

    def __init__(self, decoder: Any, options: Decoding):
        self.decoder = decoder
        self.options = options

    @abc.abstractmethod
    def begin(
        self, state: dict[str, Any], limits: Int[Tensor, " batch"] | None
    ) -> dict[str, Any]:
        """The values before the first step.

        Args:
            state: The decoder's, as `start` returned it.
            limits: int `(batch,)`, greatest numbers of tokens, or `None`.
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

    def run(
        self, encoded: Any, limits: Int[Tensor, " batch"] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Takes all steps, in one graph.

        Args:
            encoded: What the decoder starts from.
            limits: int `(batch,)`, greatest numbers of tokens, EOS included, or `None`.

        Returns:
            `results`.
        """
        length = self.options.max_length
        state = self.decoder.start(encoded, length=length)
        memory = state["memory"]
        _, values = ops.while_loop(
            lambda index, values: self.is_unfinished(values),
            lambda index, values: (index + 1, self.next_step(memory, index, values)),
            (0, self.begin(state, limits)),
            maximum_iterations=length,
        )
        return self.results(values)


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
    tokens = ops.expand_dims(tokens, -1)
    return ops.squeeze(ops.take_along_axis(log_probs, tokens, axis=-1), -1)
