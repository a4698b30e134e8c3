"""How options of decoding change the scores of the next token."""

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxtyping import Bool, Float32, Int, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.best_tokens import GROUP_SIZE, Scores
from keras_caption.settings.decoding import Decoding
from keras_caption.text import BOS, EOS, PAD, UNK

# Tokens that are never generated, UNK unless it is allowed. Their probability is not
# given to other tokens, unless `renormalize` asks for that, so that scores are the
# model's log-probabilities.
FORBIDDEN = (PAD, BOS, UNK)
# Finite: a sum of several stays a number, where infinities could become NaN.
NEG_INF = -1e9
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Decoding)}


@dataclasses.dataclass(frozen=True)
class Step:
    """State of the sequences at a step of a search, one sequence for each row.

    Attributes:
        log_probs: float32 `(rows, vocabulary_size)`, log-probabilities of the next
            token, of which each row may lack a constant.
        tokens: int32 `(rows, length)`; the first `index` tokens are generated.
        index: int scalar, position of the next token.
    """

    log_probs: Float32[Tensor, "rows vocabulary_size"]
    tokens: Int32[Tensor, "rows length"]
    index: Int[Tensor, ""]

    @property
    def vocabulary_size(self) -> int:
        return self.log_probs.shape[-1]

    def choose_only(
        self, scores: Scores, rows: Bool[Tensor, "rows 1"], tokens: Any
    ) -> Scores:
        """Leaves some rows one token to choose.

        Args:
            scores: `Scores`.
            rows: bool `(rows, 1)`, which rows.
            tokens: int `(rows, 1)`, or a number.
        """
        is_token = ops.arange(self.vocabulary_size) == tokens
        only = ops.where(is_token, self.log_probs, NEG_INF)
        return Scores(
            ops.where(rows, only, scores.all), ops.where(rows, 0.0, scores.special)
        )


def choosing_scores(
    scores: Float32[Tensor, "rows vocabulary_size"],
    step: Step,
    options: Decoding,
    per_example: dict[str, Tensor],
) -> Scores:
    """Computes the scores by which the next tokens are chosen.

    A score is the log-probability of a token, unless a hook or an option changes or
    forbids it.

    Args:
        scores: float32 `(rows, vocabulary_size)`, log-probabilities as hooks changed
            them, of which each row may lack a constant.
        step: `Step`.
        options: `Decoding`.
        per_example: dict of tensors with a value for each row, see
            `keras_caption.decoding.search.Search`.

    Returns:
        `Scores`.
    """
    special = forbidden_log_probs(GROUP_SIZE, options.allow_unk)
    changed = Scores(
        scores, ops.broadcast_to(special, (ops.shape(scores)[0], GROUP_SIZE))
    )
    for name, rule in RULES.items():
        if is_asked_for(name, options, per_example):
            value = per_example.get(name, getattr(options, name, None))
            changed = rule(changed, value, step)
    return changed


def is_asked_for(name: str, options: Decoding, per_example: dict[str, Tensor]) -> bool:
    """Whether a rule may change scores: a default changes nothing."""
    return name in per_example or getattr(options, name, None) != DEFAULTS.get(name)


def forbidden_log_probs(vocabulary_size, allow_unk=False):
    """Returns `(vocabulary_size,)`, added to log-probabilities before a choice."""
    tokens = ops.arange(vocabulary_size)
    excluded = [x for x in FORBIDDEN if x != UNK or not allow_unk]
    forbidden = ops.any(
        ops.expand_dims(tokens, 1) == ops.convert_to_tensor(excluded), axis=1
    )
    return ops.where(forbidden, NEG_INF, 0.0)


def column(value: Any) -> Any:
    """Makes a value for each row broadcast over tokens; a single number stays."""
    return value if isinstance(value, int | float) else ops.expand_dims(value, 1)


# === Rules: functions of the scores so far, the option's value and the step ===


def penalize_repetition(scores: Scores, penalty: Any, step: Step) -> Scores:
    # Log-probabilities are negative: a penalty above 1 lowers them.
    seen = tokens_among(step.tokens, step.vocabulary_size)
    penalized = ops.where(seen, scores.all * column(penalty), scores.all)
    return scores._replace(all=penalized)


def block_ngrams(scores: Scores, size: int, step: Step) -> Scores:
    repeats = repeated_ngrams(step.tokens, step.index, size, step.vocabulary_size)
    return scores._replace(all=ops.where(repeats, NEG_INF, scores.all))


def forbid_phrases(
    scores: Scores, phrases: Int[Tensor, "rows phrases longest"], step: Step
) -> Scores:
    """Forbids the last token of a phrase after its first ones; PAD pads in front."""
    first, last = phrases[..., :-1], phrases[..., -1]  # (rows, phrases, length)
    length = ops.shape(first)[-1]
    places = step.index - length + ops.arange(length)
    # The tokens before this one, PAD before the first: (rows, 1, length).
    before = ops.take(step.tokens, ops.maximum(places, 0), axis=1)
    before = ops.expand_dims(ops.where(places < 0, PAD, before), 1)
    matches = ops.all(ops.logical_or(first == PAD, first == before), axis=-1)
    ends = tokens_among(ops.where(matches, last, PAD), step.vocabulary_size)
    return scores._replace(all=ops.where(ends, NEG_INF, scores.all))


def forbid_early_end(scores: Scores, min_length: Any, step: Step) -> Scores:
    is_end = ops.arange(GROUP_SIZE) == EOS
    early = ops.logical_and(step.index < column(min_length), is_end)
    special = scores.special + ops.where(early, NEG_INF, 0.0)
    return scores._replace(special=special)


def end_at_limit(scores: Scores, limits: Int[Tensor, " rows"], step: Step) -> Scores:
    at_limit = step.index >= column(limits) - 1  # limits include EOS
    return ops.cond(  # at most steps no row is at its limit
        ops.any(at_limit),
        lambda: step.choose_only(scores, at_limit, EOS),
        lambda: scores,
    )


def continue_prefix(
    scores: Scores, prefix: Int[Tensor, "rows length"], step: Step
) -> Scores:
    token = ops.expand_dims(ops.take(prefix, step.index, axis=1), 1)
    return step.choose_only(scores, token != PAD, token)


# Rules by option, or by another key of `per_example`. They run in this order: a later
# rule overrides earlier ones, so that a prefix may hold what they forbid.
RULES: dict[str, Callable[[Scores, Any, Step], Scores]] = {
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
    """Finds the tokens that would repeat an n-gram, bool `(rows, vocabulary_size)`.

    Args:
        tokens: int `(rows, length)`; the first `index` tokens are generated.
        index: int scalar, position of the next token.
        size: int, the n of n-grams.
        vocabulary_size: int, number of tokens.
    """
    starts = max(tokens.shape[1] - size + 1, 0)
    # An n-gram, by its start, is repeated if it is complete before the next token,
    same = ops.arange(size - 1, size - 1 + starts) < index
    # and if it begins with the n - 1 tokens before the next token.
    for offset in range(size - 1):
        place = ops.maximum(index - (size - 1) + offset, 0)
        last = ops.expand_dims(ops.take(tokens, place, axis=1), 1)
        same = ops.logical_and(same, tokens[:, offset : offset + starts] == last)
    ends = ops.where(same, tokens[:, size - 1 :], PAD)
    return tokens_among(ends, vocabulary_size)


def tokens_among(
    ids: Int[Tensor, "rows count"], vocabulary_size: int
) -> Bool[Tensor, "rows vocabulary_size"]:
    """Finds the tokens among the ids of a row, bool `(rows, vocabulary_size)`."""
    rows = ops.shape(ids)[0]
    first = ops.expand_dims(ops.arange(rows, dtype=ids.dtype), 1) * vocabulary_size
    places = ops.reshape(first + ids, (-1, 1))
    # A scatter takes one write per id; a comparison would take the whole vocabulary.
    ones = ops.ones_like(places[:, 0], dtype="float32")
    counts = ops.scatter(places, ones, (rows * vocabulary_size,))
    return ops.reshape(counts, (-1, vocabulary_size)) > 0
