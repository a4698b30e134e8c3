from typing import NamedTuple

from jaxtyping import Float, Int32
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.decoding.take_by_row import take_by_row

GROUP_SIZE = 16  # tokens; the search compares the maxima of groups first


class Scores(NamedTuple):
    """Scores of next tokens, of which those of the first ones have two parts.

    To add to all tokens what forbids a few, which come first, would take as long as a
    pass over the whole vocabulary.

    Attributes:
        all: float `(rows, vocabulary_size)`.
        special: float `(rows, GROUP_SIZE)`, added to those of the first tokens.
    """

    all: Float[Tensor, "rows vocabulary_size"]
    special: Float[Tensor, "rows special"]

    def sum(self) -> Float[Tensor, "rows vocabulary_size"]:
        """The scores in one tensor."""
        return add_special(self.all, self.special)


def best_tokens(
    scores: Scores, count: int
) -> tuple[Float[Tensor, "rows count"], Int32[Tensor, "rows count"]]:
    """Finds the best tokens of each row as `ops.top_k` does, four times as fast.

    The best tokens are in the `count` groups with the greatest maxima: for any other
    group, those `count` maxima are at least as good as all of its tokens. Ties go to
    the smaller token, as groups stay in order.

    Args:
        scores: `Scores`.
        count: int, number of tokens.

    Returns:
        Scores, float, the best first, and tokens, int32, each `(rows, count)`.
    """
    members, special = scores
    size = members.shape[-1]
    groups = -(-size // GROUP_SIZE)
    if groups <= count:
        best, tokens = ops.top_k(scores.sum(), count)
        return best, ops.cast(tokens, "int32")
    if rest := groups * GROUP_SIZE - size:
        members = ops.pad(members, ((0, 0), (0, rest)), constant_values=-float("inf"))
    members = ops.reshape(members, (-1, groups, GROUP_SIZE))
    first = ops.max(members[:, 0] + special, axis=1, keepdims=True)
    maxima = ops.concatenate([first, ops.max(members, axis=2)[:, 1:]], axis=1)
    # Sorted: `top_k` then prefers the smaller of equal tokens.
    chosen = ops.sort(ops.cast(ops.top_k(maxima, count)[1], "int32"), axis=1)
    candidates = take_by_row(members, chosen)
    candidates = ops.reshape(candidates, (-1, count * GROUP_SIZE))
    # The first group, if it is chosen, is the first of them.
    special = ops.where(chosen[:, :1] == 0, special, 0.0)
    best, places = ops.top_k(add_special(candidates, special), count)
    places = ops.cast(places, "int32")
    chosen = ops.take_along_axis(chosen, places // GROUP_SIZE, axis=1)
    return best, chosen * GROUP_SIZE + places % GROUP_SIZE


def add_special(
    scores: Float[Tensor, "rows count"], special: Float[Tensor, "rows special"]
) -> Float[Tensor, "rows count"]:
    """Adds to the scores of the first tokens."""
    size, count = special.shape[1], scores.shape[1]
    special = ops.pad(special[:, :count], ((0, 0), (0, max(count - size, 0))))
    return scores + special


def log_sum_exp(
    logits: Float[Tensor, "rows vocabulary_size"],
) -> Float[Tensor, " rows"]:
    """Computes the logarithm of the sum of exponentials of each row.

    The probability of the best token tells it: a softmax is one operation in
    TensorFlow, and takes half the time of those of `ops.logsumexp`, or of a
    log-softmax.
    """
    best = ops.max(ops.softmax(logits), axis=1)  # at least 1 / vocabulary_size
    return ops.max(logits, axis=1) - ops.log(best)
