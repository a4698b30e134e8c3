from typing import Any

from keras import ops

from keras_caption.decoding.options import Decoding
from keras_caption.decoding.rules import NEG_INF, forbidden_log_probs
from keras_caption.decoding.search import batch_size, repeat_rows
from keras_caption.decoding.token_by_token import TokenByToken


def sample(
    decoder: Any,
    memory: Any,
    numbers: Any,
    options: Decoding | None = None,
    limits: Any = None,
    first_is_greedy: bool = False,
) -> tuple[Any, Any]:
    """Samples captions token by token.

    PAD, BOS and UNK are never sampled. A token is sampled by inverting the cumulative
    distribution at a uniform number. The caller generates all uniform numbers, so
    that this is a pure function.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        numbers: float32 `(batch * C, max_length)`, uniform in [0, 1), as of
            `keras.random.uniform`, for C captions of each image, next to each other.
        options: `Decoding`; those of a search and the seed are not read. Defaults to a
            `temperature` of 1.
        limits: int `(batch,)`, greatest numbers of tokens, EOS included, or `None`.
        first_is_greedy: bool, whether the first caption of each image is the greedy
            one instead, in the same pass.

    Returns:
        Tokens, int32 `(batch * C, max_length)`, from the first to EOS, then
        PAD; and the log-probability of each caption under the model itself (before
        temperature and cut-off), EOS included, float32 `(batch * C,)`.
    """
    options = options or Decoding(temperature=1.0)
    return Sampling(decoder, options, numbers, first_is_greedy).run(memory, limits)


class Sampling(TokenByToken):
    """Sampling, see `sample`."""

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        numbers: Any,
        first_is_greedy: bool = False,
    ):
        super().__init__(decoder, options)
        self.numbers = numbers
        self.first_is_greedy = first_is_greedy

    def begin(self, state: dict[str, Any], limits: Any) -> dict[str, Any]:
        rows = ops.shape(self.numbers)[0]
        captions = captions_per_image(state, rows)
        if limits is not None:
            limits = ops.repeat(limits, captions)
        cache = repeat_rows(state["cache"], captions)
        is_greedy = ops.arange(rows) % captions == 0
        values = super().begin({**state, "cache": cache}, limits)
        return {**values, "numbers": self.numbers, "is_greedy": is_greedy}

    def choose(self, scores: Any, index: Any, values: dict[str, Any]) -> Any:
        log_policy = policy(scores, self.options.temperature, self.options.top_k)
        numbers = ops.take(values["numbers"], index, axis=1)
        tokens = sample_tokens(log_policy, numbers)
        if not self.first_is_greedy:
            return tokens
        greedy = ops.cast(ops.argmax(log_policy, axis=-1), "int32")
        return ops.where(values["is_greedy"], greedy, tokens)


def policy(logits: Any, temperature: float = 1.0, top_k: int | None = None) -> Any:
    """Log-probabilities of the sampling distribution, `(..., vocabulary_size)`.

    Args:
        logits: `(..., vocabulary_size)`, normalized or not.
        temperature, top_k: Of `Decoding`.
    """
    log_probs = logits + forbidden_log_probs(logits.shape[-1])
    if top_k is not None and top_k < logits.shape[-1]:
        least = ops.top_k(log_probs, top_k)[0][..., -1:]
        log_probs = ops.where(log_probs < least, NEG_INF, log_probs)
    return ops.log_softmax(log_probs / temperature)


def sample_tokens(log_probs, numbers):
    """Samples tokens: those at which cumulative distributions pass uniform numbers.

    Args:
        log_probs: `(rows, vocabulary_size)`.
        numbers: float32 `(rows,)`, in [0, 1).

    Returns:
        int32 `(rows,)`.
    """
    cumulative = ops.cumsum(ops.exp(log_probs), axis=-1)
    passed = cumulative <= ops.expand_dims(numbers, 1) * cumulative[:, -1:]
    tokens = ops.sum(ops.cast(passed, "int32"), axis=-1)
    return ops.minimum(tokens, log_probs.shape[-1] - 1)


def captions_per_image(state, rows):
    """Number of captions of each image in a number of rows; an int if it is known."""
    images = batch_size(state)
    if isinstance(images, int):
        return rows // max(images, 1)
    return rows // ops.maximum(images, 1)  # a replica may have none
