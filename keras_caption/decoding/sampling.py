from typing import Any

from keras import ops

from keras_caption.decoding.options import check_values
from keras_caption.decoding.token_by_token import (
    NEG_INF,
    captions_per_image,
    forbidden_log_probs,
    repeat_state,
    token_by_token,
)


def sample(
    decoder: Any,
    memory: Any,
    numbers: Any,
    temperature: float = 1.0,
    top_k: int | None = None,
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
            A caption of `max_length` tokens has no EOS.
        temperature: float, sampling temperature, which divides the log-probabilities.
        top_k: int, sample from the k most probable tokens only, or `None`.
        first_is_greedy: bool, whether the first caption of each image is the greedy
            one instead, in the same pass.

    Returns:
        Tokens, int32 `(batch * C, max_length)`, from the first to EOS, then
        PAD; and the log-probability of each caption under the model itself (before
        temperature and cut-off), EOS included, float32 `(batch * C,)`.

    Raises:
        InputError: If `temperature` or `top_k` has a wrong value.
    """
    check_values(temperature=temperature)
    if top_k is not None:
        check_values(top_k=top_k)
    rows, max_length = ops.shape(numbers)
    state = decoder.start(memory, length=max_length)
    captions = captions_per_image(state, rows)
    is_greedy = ops.arange(rows) % captions == 0

    def choose(log_probs, index):
        log_policy = policy(log_probs, temperature, top_k)
        tokens = sample_tokens(log_policy, ops.take(numbers, index, axis=1))
        if first_is_greedy:
            greedy = ops.cast(ops.argmax(log_policy, axis=-1), "int32")
            tokens = ops.where(is_greedy, greedy, tokens)
        return tokens

    state = repeat_state(state, captions)
    return token_by_token(decoder, state, max_length, choose)


def policy(logits: Any, temperature: float = 1.0, top_k: int | None = None) -> Any:
    """Log-probabilities of the sampling distribution, `(..., vocabulary_size)`.

    Args:
        logits: `(..., vocabulary_size)`, normalized or not.
        temperature, top_k: Options of `sample`.
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
