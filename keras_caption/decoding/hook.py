"""Scores of next tokens that depend on what an input holds."""

import abc
from typing import Any

from jaxtyping import Float32, Int, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.registration import Registry
from keras_caption.text import PAD

# What makes the hook of an option of `Decoding` from a vocabulary, by option.
HOOKS = Registry("hooks")


class Hook(abc.ABC):
    """Changes the scores of next tokens, in all searches and self-critical training.

    The hooks of a model are in the dict `model.hooks`, by names. They run before the
    rules of `Decoding`, such as `forbidden` and `prefix`, which can override them. They
    are not saved with a model; an export has those that the model had.

    Both methods use `keras.ops` only: they are compiled, exported and differentiated.

    Example:

    ```python
    class Avoided(keras_caption.decoding.Hook):
        def __init__(self, vocabulary, words):
            self.is_avoided = np.isin(vocabulary.words, words.split())

        def read(self, inputs):
            return {}  # nothing of the image

        def __call__(self, scores, tokens, index, state):
            return scores - 5.0 * self.is_avoided

    model.hooks["avoided"] = Avoided(model.vocabulary, "man woman")
    ```
    """

    @abc.abstractmethod
    def read(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Computes what `__call__` needs of the inputs, once before the first step.

        Args:
            inputs: dict of tensors of a batch, as the model's `read` returns it.

        Returns:
            dict of tensors, one row for each example.
        """

    @abc.abstractmethod
    def __call__(
        self,
        scores: Float32[Tensor, "rows vocabulary_size"],
        tokens: Int32[Tensor, "rows length"],
        index: Int[Tensor, ""],
        state: dict[str, Any],
    ) -> Float32[Tensor, "rows vocabulary_size"]:
        """Changes the scores by which the next tokens are chosen.

        Args:
            scores: float32 `(rows, vocabulary_size)`, log-probabilities, as earlier
                hooks changed them. A score of -1e9 forbids a token.
            tokens: int32 `(rows, length)`, of which the first `index` are generated.
            index: int scalar, position of the next token.
            state: dict, what `read` returned, one row for each row of scores.

        Returns:
            float32 `(rows, vocabulary_size)`, at most 0: beam search stops once scores
            of at most 0 cannot change the result, and positive ones may end it early.
        """


def with_hooks(
    hooks: dict[str, Hook],
    scores: Float32[Tensor, "rows vocabulary_size"],
    tokens: Int32[Tensor, "rows length"],
    index: Int[Tensor, ""],
    states: dict[str, Any],
) -> Float32[Tensor, "rows vocabulary_size"]:
    """Applies hooks, by the state that each has read, in the order of the dict."""
    for name, hook in hooks.items():
        scores = hook(scores, tokens, index, states[name])
    return scores


def with_hooks_everywhere(
    hooks: dict[str, Hook],
    logits: Float32[Tensor, "rows length vocabulary_size"],
    tokens: Int32[Tensor, "rows length"],
    states: dict[str, Any],
) -> Float32[Tensor, "rows length vocabulary_size"]:
    """Applies hooks to all positions of whole texts, as the steps of a search do.

    Args:
        hooks: dict of `Hook`.
        logits: float32 `(rows, length, vocabulary_size)`, of each token after those
            before it.
        tokens: int32 `(rows, length)`.
        states: dict, what each hook has read, one row for each row of tokens.
    """
    positions = ops.arange(tokens.shape[1], dtype="int32")

    def at(place):
        index, scores = place
        before = ops.where(positions < index, tokens, PAD)
        return with_hooks(hooks, scores, before, index, states)

    scores = ops.transpose(ops.log_softmax(logits), (1, 0, 2))
    return ops.transpose(ops.map(at, (positions, scores)), (1, 0, 2))
