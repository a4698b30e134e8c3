"""What the options of decoding change in the probabilities of the next token."""

from jaxtyping import Bool, Float32, Int, Int32
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.decoding.options import Decoding
from keras_caption.text import BOS, EOS, PAD, UNK

# Tokens that are never generated, UNK unless it is allowed. Their probability is not
# given to other tokens unless that is asked for, so that scores stay the model's own.
FORBIDDEN = (PAD, BOS, UNK)
NEG_INF = -1e9


def choosing_scores(
    log_probs: Float32[Tensor, "rows vocabulary_size"],
    tokens: Int32[Tensor, "rows length"],
    index: Int[Tensor, ""],
    options: Decoding,
    limits: Int[Tensor, " rows"] | None = None,
) -> Float32[Tensor, "rows vocabulary_size"]:
    """Scores that next tokens are chosen by.

    They are the log-probabilities, but for tokens that the options change or forbid.

    Args:
        log_probs: float32 `(rows, vocabulary_size)`.
        tokens: int32 `(rows, length)`, of which the first `index` are generated.
        index: int scalar, position of the next token.
        options: `Decoding`.
        limits: int `(rows,)`, greatest numbers of tokens, EOS included: there it is
            the only choice. `None` for no limits.

    Returns:
        float32 `(rows, vocabulary_size)`.
    """
    vocabulary_size = log_probs.shape[-1]
    scores = log_probs + forbidden_log_probs(vocabulary_size, options.allow_unk)
    if options.no_repeat_ngram:
        repeats = repeated_ngrams(
            tokens, index, options.no_repeat_ngram, vocabulary_size
        )
        scores = ops.where(repeats, NEG_INF, scores)
    if limits is not None:
        only_end = ops.where(ops.arange(vocabulary_size) == EOS, log_probs, NEG_INF)
        at_limit = ops.expand_dims(index >= limits - 1, 1)
        scores = ops.where(at_limit, only_end, scores)
    return scores


def token_log_probs(
    logits: Float32[Tensor, "rows vocabulary_size"], options: Decoding
) -> Float32[Tensor, "rows vocabulary_size"]:
    """Log-probabilities of next tokens, which scores of sequences are sums of.

    Args:
        logits: float32 `(rows, vocabulary_size)`.
        options: `Decoding`.
    """
    if options.renormalize:
        logits = logits + forbidden_log_probs(logits.shape[-1], options.allow_unk)
    return ops.log_softmax(logits)


def forbidden_log_probs(vocabulary_size, allow_unk=False):
    """`(vocabulary_size,)`: to be added to log-probabilities before choosing."""
    tokens = ops.arange(vocabulary_size)
    never = [x for x in FORBIDDEN if x != UNK or not allow_unk]
    forbidden = ops.any(
        ops.expand_dims(tokens, 1) == ops.convert_to_tensor(never), axis=1
    )
    return ops.where(forbidden, NEG_INF, 0.0)


def repeated_ngrams(
    tokens: Int[Tensor, "rows length"],
    index: Int[Tensor, ""],
    size: int,
    vocabulary_size: int,
) -> Bool[Tensor, "rows vocabulary_size"]:
    """Tokens that would repeat an n-gram, bool `(rows, vocabulary_size)`.

    Args:
        tokens: int `(rows, length)`, of which the first `index` are generated.
        index: int scalar, position of the next token.
        size: int n, number of tokens of an n-gram.
        vocabulary_size: int, number of tokens.
    """
    starts = max(tokens.shape[1] - size + 1, 0)
    # n-grams that are complete before the next token,
    same = ops.arange(size - 1, size - 1 + starts) < index
    # and begin with the n - 1 tokens before it.
    for offset in range(size - 1):
        place = ops.maximum(index - (size - 1) + offset, 0)
        last = ops.expand_dims(ops.take(tokens, place, axis=1), 1)
        same = ops.logical_and(same, tokens[:, offset : offset + starts] == last)
    ends = ops.where(same, tokens[:, size - 1 :], PAD)
    return ops.any(ops.one_hot(ends, vocabulary_size, dtype="bool"), axis=1)
