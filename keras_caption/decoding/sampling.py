from typing import Any

from jaxtyping import Float, Float32, Int, Int32
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.decoding.options import Decoding
from keras_caption.decoding.rules import NEG_INF, forbidden_log_probs
from keras_caption.decoding.search import batch_size, repeat_rows
from keras_caption.decoding.token_by_token import TokenByToken


def sample(
    decoder: Any,
    memory: Any,
    numbers: Float32[Tensor, "batch*C max_length"],
    options: Decoding | None = None,
    limits: Int[Tensor, " batch"] | None = None,
    first_is_greedy: bool = False,
) -> tuple[Int32[Tensor, "batch*C max_length"], Float32[Tensor, " batch*C"]]:
    """Samples sequences token by token.

    PAD, BOS and UNK are never sampled. A token is sampled by inverting the cumulative
    distribution at a uniform number. The caller generates all uniform numbers, so
    that this is a pure function.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: What the decoder starts from.
        numbers: float32 `(batch * C, max_length)`, uniform in [0, 1), as of
            `keras.random.uniform`, for C sequences of each example, next to each other.
        options: `Decoding`; those of a search and the seed are not read. Defaults to a
            `temperature` of 1.
        limits: int `(batch,)`, greatest numbers of tokens, EOS included, or `None`.
        first_is_greedy: bool, whether the first sequence of each example is the greedy
            one instead, in the same pass.

    Returns:
        Tokens, int32 `(batch * C, max_length)`, from the first to EOS, then
        PAD; and the log-probability of each sequence under the model itself (before
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
        sequences = sequences_per_example(state, rows)
        if limits is not None:
            limits = ops.repeat(limits, sequences)
        cache = repeat_rows(state["cache"], sequences)
        is_greedy = ops.arange(rows) % sequences == 0
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


def policy(
    logits: Float[Tensor, "... vocabulary_size"],
    temperature: float = 1.0,
    top_k: int | None = None,
) -> Float[Tensor, "... vocabulary_size"]:
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


def sequences_per_example(state, rows):
    """Number of sequences of each example, of all rows; an int if it is known."""
    examples = batch_size(state)
    if isinstance(examples, int):
        return rows // max(examples, 1)
    return rows // ops.maximum(examples, 1)  # a replica may have none
