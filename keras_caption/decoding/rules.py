"""What the options of decoding change in the probabilities of the next token."""

import dataclasses
from typing import Any

from jaxtyping import Bool, Float32, Int, Int32
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.settings.decoding import Decoding
from keras_caption.text import BOS, EOS, PAD, UNK

# Tokens that are never generated, UNK unless it is allowed. Their probability is not
# given to other tokens unless that is asked for, so that scores stay the model's own.
FORBIDDEN = (PAD, BOS, UNK)
NEG_INF = -1e9
# What a token without evidence costs: it comes only where all others are forbidden.
UNSUPPORTED = 1e6
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Decoding)}


@dataclasses.dataclass(frozen=True)
class Step:
    """Where sequences are, one for each row.

    Attributes:
        log_probs: float32 `(rows, vocabulary_size)`, of the next token.
        tokens: int32 `(rows, length)`, of which the first `index` are generated.
        index: int scalar, position of the next token.
        admissible: bool `(rows, vocabulary_size)`, tokens that the input supports; or
            `None`, if it supports all.
    """

    log_probs: Float32[Tensor, "rows vocabulary_size"]
    tokens: Int32[Tensor, "rows length"]
    index: Int[Tensor, ""]
    admissible: Bool[Tensor, "rows vocabulary_size"] | None = None

    @property
    def vocabulary_size(self) -> int:
        return self.log_probs.shape[-1]

    def only(self, tokens: Int[Tensor, "rows 1"]) -> Float32[Tensor, "rows size"]:
        """Scores of which each row has one token to choose."""
        is_token = ops.arange(self.vocabulary_size) == tokens
        return ops.where(is_token, self.log_probs, NEG_INF)


def choosing_scores(
    step: Step, options: Decoding, per_example: dict[str, Tensor]
) -> Float32[Tensor, "rows vocabulary_size"]:
    """Scores that next tokens are chosen by.

    They are the log-probabilities, but for tokens that the options change or forbid.

    Args:
        step: `Step`.
        options: `Decoding`.
        per_example: dict of tensors, see `keras_caption.decoding.search.Search`, one
            value for each row.

    Returns:
        float32 `(rows, vocabulary_size)`.
    """
    scores = step.log_probs + forbidden_log_probs(
        step.vocabulary_size, options.allow_unk
    )
    if step.admissible is not None:
        scores = ops.where(step.admissible, scores, scores - UNSUPPORTED)
    for name, rule in RULES.items():
        value = per_example.get(name, getattr(options, name, None))
        if name in per_example or value != DEFAULTS.get(name):
            scores = rule(scores, value, step)
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


def column(value: Any) -> Any:
    """A number, or one for each row, to be broadcast to tokens."""
    return value if isinstance(value, int | float) else ops.expand_dims(value, 1)


# === Rules: functions of the scores so far, the option's value and the step ===


def penalize_repetition(scores: Tensor, penalty: Any, step: Step) -> Tensor:
    seen = tokens_among(step.tokens, step.vocabulary_size)
    return ops.where(seen, scores * column(penalty), scores)


def block_ngrams(scores: Tensor, size: int, step: Step) -> Tensor:
    repeats = repeated_ngrams(step.tokens, step.index, size, step.vocabulary_size)
    return ops.where(repeats, NEG_INF, scores)


def forbid_phrases(
    scores: Tensor, phrases: Int[Tensor, "rows phrases longest"], step: Step
) -> Tensor:
    """Forbids the last token of phrases, of which PAD precedes the shorter ones."""
    first, last = phrases[..., :-1], phrases[..., -1]
    length = ops.shape(first)[-1]
    places = step.index - length + ops.arange(length)
    before = ops.take(step.tokens, ops.maximum(places, 0), axis=1)
    before = ops.expand_dims(ops.where(places < 0, PAD, before), 1)
    comes = ops.all(ops.logical_or(first == PAD, first == before), axis=-1)
    ends = tokens_among(ops.where(comes, last, PAD), step.vocabulary_size)
    return ops.where(ends, NEG_INF, scores)


def forbid_early_end(scores: Tensor, min_length: Any, step: Step) -> Tensor:
    is_end = ops.arange(step.vocabulary_size) == EOS
    early = ops.logical_and(step.index < column(min_length), is_end)
    return scores + ops.where(early, NEG_INF, 0.0)


def end_at_limit(scores: Tensor, limits: Int[Tensor, " rows"], step: Step) -> Tensor:
    at_limit = step.index >= column(limits) - 1
    return ops.cond(  # at most steps no row is at its limit
        ops.any(at_limit),
        lambda: ops.where(at_limit, step.only(EOS), scores),
        lambda: scores,
    )


def continue_prefix(
    scores: Tensor, prefix: Int[Tensor, "rows length"], step: Step
) -> Tensor:
    token = ops.expand_dims(ops.take(prefix, step.index, axis=1), 1)
    return ops.where(token == PAD, scores, step.only(token))


# By option, or what else an example has; a later one goes before those above it.
RULES = {
    "repetition_penalty": penalize_repetition,
    "no_repeat_ngram": block_ngrams,
    "forbidden": forbid_phrases,
    "min_length": forbid_early_end,
    "limits": end_at_limit,
    "prefix": continue_prefix,
}


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
    return tokens_among(ends, vocabulary_size)


def tokens_among(
    ids: Int[Tensor, "rows count"], vocabulary_size: int
) -> Bool[Tensor, "rows vocabulary_size"]:
    """Which tokens are among the ids of a row, bool `(rows, vocabulary_size)`."""
    rows = ops.shape(ids)[0]
    first = ops.expand_dims(ops.arange(rows, dtype=ids.dtype), 1) * vocabulary_size
    places = ops.reshape(first + ids, (-1, 1))
    # Not a comparison with all tokens, which takes their number for each id.
    ones = ops.ones_like(places[:, 0], dtype="float32")
    found = ops.scatter(places, ones, (rows * vocabulary_size,))
    return ops.reshape(found, (-1, vocabulary_size)) > 0
