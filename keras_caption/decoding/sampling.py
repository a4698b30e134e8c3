import math
from typing import Any

from jaxtyping import Float, Float32, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.rules import NEG_INF, column, forbidden_log_probs
from keras_caption.decoding.search import batch_size, is_hypothesis, repeat_rows
from keras_caption.decoding.take_by_row import take_by_row
from keras_caption.decoding.token_by_token import TokenByToken
from keras_caption.settings.decoding import Decoding


def sample(
    decoder: Any,
    memory: Any,
    numbers: Float32[Tensor, "batch*C max_length"],
    options: Decoding | None = None,
    per_example: dict[str, Tensor] | None = None,
    first_is_greedy: bool = False,
) -> tuple[Int32[Tensor, "batch*C max_length"], Float32[Tensor, " batch*C"]]:
    """Samples sequences token by token.

    PAD, BOS and UNK are never sampled. A token is sampled by inverting the cumulative
    distribution at a uniform number. The caller supplies the uniform numbers, which
    makes this a pure function.

    Args:
        decoder: Has `start(memory, length)` and `step(tokens, state, index)`.
        memory: The encoder's output, which the decoder's `start` takes.
        numbers: float32 `(batch * C, max_length)`, uniform in [0, 1), for C sequences
            of each example. The sequences of an example are adjacent.
        options: `Decoding`; options of searches and the seed are ignored. Defaults to a
            `temperature` of 1.
        per_example: dict of tensors, see `keras_caption.decoding.search.Search`.
        first_is_greedy: bool, whether the first sequence of each example is decoded
            greedily instead, in the same pass. Defaults to `False`.

    Returns:
        Tokens, int32 `(batch * C, max_length)`, up to EOS, then PAD; and the
        log-probability of each sequence under the model, before temperature and
        truncation, EOS included, float32 `(batch * C,)`.
    """
    options = options or Decoding(temperature=1.0)
    search = Sampling(decoder, options, numbers, per_example, first_is_greedy)
    return search.run(memory)


class Sampling(TokenByToken):
    """Sampling, see `sample`."""

    def __init__(
        self,
        decoder: Any,
        options: Decoding,
        numbers: Any,
        per_example: dict[str, Tensor] | None = None,
        first_is_greedy: bool = False,
    ):
        super().__init__(decoder, options, per_example)
        self.numbers = numbers
        self.first_is_greedy = first_is_greedy

    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        rows = ops.shape(self.numbers)[0]
        sequences = sequences_per_example(state, rows)
        cache = repeat_rows(state["cache"], sequences)
        return {
            **super().begin({**state, "cache": cache}),
            "per_example": repeat_rows(self.per_example, sequences),
            "numbers": self.numbers,
            "is_greedy": ops.arange(rows) % sequences == 0,
        }

    def choose(self, scores: Any, index: Any, values: dict[str, Any]) -> Any:
        names = "temperature", "top_k", "top_p"
        log_policy = policy(scores, *(self.option(name, values) for name in names))
        numbers = ops.take(values["numbers"], index, axis=1)
        tokens = sample_tokens(log_policy, numbers)
        if not self.first_is_greedy:
            return tokens
        greedy = ops.cast(ops.argmax(log_policy, axis=-1), "int32")
        return ops.where(values["is_greedy"], greedy, tokens)


def policy(
    logits: Float[Tensor, "... vocabulary_size"],
    temperature: Any = 1.0,
    top_k: Any = None,
    top_p: Any = None,
) -> Float[Tensor, "... vocabulary_size"]:
    """Computes log-probabilities of the sampling distribution.

    Args:
        logits: float `(..., vocabulary_size)`, normalized or not.
        temperature, top_k, top_p: See `Decoding`. With logits
            `(rows, vocabulary_size)`, each may be a tensor `(rows,)`.

    Returns:
        float `(..., vocabulary_size)`.
    """
    size = logits.shape[-1]
    log_probs = logits + forbidden_log_probs(size)
    if isinstance(top_k, int):
        least = ops.top_k(log_probs, min(top_k, size))[0][..., -1:]
        log_probs = ops.where(log_probs < least, NEG_INF, log_probs)
    elif top_k is not None:
        place = column(ops.minimum(top_k, size) - 1)
        least = ops.take_along_axis(ops.top_k(log_probs, size)[0], place, axis=-1)
        log_probs = ops.where(log_probs < least, NEG_INF, log_probs)
    # Relative to the best score, so that a low temperature cannot make all scores
    # infinite. Forbidden tokens are set again, as a high temperature raises them.
    best = ops.max(log_probs, axis=-1, keepdims=True)
    scaled = (log_probs - best) / column(temperature)
    allowed = is_hypothesis(log_probs)
    log_probs = ops.log_softmax(ops.where(allowed, scaled, NEG_INF))
    if top_p is None:
        return log_probs
    # Nucleus: a token is kept while the tokens before it sum to less than `top_p`. The
    # case of 1 is explicit, since rounded sums may reach 1 before the last token.
    best = ops.top_k(log_probs, size)[0]
    before = ops.cumsum(ops.exp(best), axis=-1) - ops.exp(best)
    top_p = column(top_p)
    nucleus = ops.logical_or(before < top_p, top_p >= 1)
    least = ops.min(ops.where(nucleus, best, 0.0), axis=-1, keepdims=True)
    return ops.log_softmax(ops.where(log_probs < least, NEG_INF, log_probs))


def sample_tokens(log_probs, numbers):
    """Samples tokens by inverting cumulative distributions at uniform numbers.

    A group of tokens is sampled first, then a token of the group: a cumulative sum over
    a whole vocabulary takes XLA a millisecond on a GPU, as long as the rest of a step.

    Args:
        log_probs: `(rows, vocabulary_size)`.
        numbers: float32 `(rows,)`, in [0, 1).

    Returns:
        int32 `(rows,)`.
    """
    size = log_probs.shape[-1]
    group_size = math.isqrt(size - 1) + 1  # the least cost of both sums
    groups = -(-size // group_size)
    probabilities = ops.exp(log_probs)
    if padding := groups * group_size - size:
        probabilities = ops.pad(probabilities, ((0, 0), (0, padding)))
    members = ops.reshape(probabilities, (-1, groups, group_size))
    sums = ops.sum(members, axis=2)
    # Rounded probabilities may not sum to 1: the numbers are scaled by their sum.
    group, rest = invert(sums, numbers * ops.sum(sums, axis=1))
    members = take_by_row(members, ops.expand_dims(group, 1))[:, 0]
    token, _ = invert(members, rest)
    return group * group_size + token


def invert(masses, targets):
    """Finds where cumulative sums of masses exceed targets.

    Args:
        masses: float `(rows, count)`, at least 0.
        targets: float `(rows,)`.

    Returns:
        Indices, int32 `(rows,)`, whose masses are above 0, however sums are rounded;
        and the targets minus the masses before the indices.
    """
    cumulative = ops.cumsum(masses, axis=-1)
    targets = ops.expand_dims(targets, 1)
    # The second condition stops at the last mass above 0, if rounding puts a target at
    # the total.
    is_before = ops.logical_and(cumulative <= targets, cumulative < cumulative[:, -1:])
    before = ops.max(ops.where(is_before, cumulative, 0.0), axis=-1)
    return ops.sum(ops.cast(is_before, "int32"), axis=-1), targets[:, 0] - before


def sequences_per_example(state, rows):
    """Computes the number of sequences per example, an int if it is known."""
    examples = batch_size(state)
    if isinstance(examples, int):
        return rows // max(examples, 1)
    return rows // ops.maximum(examples, 1)  # a replica may have none
