from typing import Any

from jaxtyping import Float32, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.token_by_token import TokenByToken
from keras_caption.settings.decoding import Decoding


def greedy_search(
    decoder: Any,
    memory: Any,
    options: Decoding | None = None,
    per_example: dict[str, Tensor] | None = None,
) -> tuple[Int32[Tensor, "batch max_length"], Float32[Tensor, " batch"]]:
    """Generates sequences by choosing the most probable token at every step.

    PAD and BOS are never chosen, nor UNK unless it is allowed.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: The encoder's output, which the decoder's `start` takes.
        options: `Decoding`; options of beams and of sampling are ignored. Defaults to
            `Decoding()`.
        per_example: dict of tensors, see `keras_caption.decoding.search.Search`.

    Returns:
        Tokens, int32 `(batch, max_length)`, up to EOS, then PAD; and the
        log-probability of each sequence, EOS included, float32 `(batch,)`.
    """
    return GreedySearch(decoder, options or Decoding(), per_example).run(memory)


class GreedySearch(TokenByToken):
    """Greedy search, see `greedy_search`."""

    def choose(self, scores: Any, index: Any, values: dict[str, Any]) -> Any:
        return ops.argmax(scores, axis=-1)
