from typing import Any

import keras
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.text import EOS, PAD

ORDERS = 4  # n-grams of one to four tokens

# The greatest vocabulary size whose keys fit into 31 bits: 46,340^2 < 2^31.
MAX_WORDS = 46_340


def ngram_keys(tokens: Tensor, xp: Any = ops) -> tuple[Tensor, Tensor]:
    """Encodes the n-grams of captions as unique pairs of int32.

    An n-gram of up to four tokens (t1, t2, t3, t4), with 0 for missing ones, becomes
    the pair (t1 V + t2, t3 V + t4) with V = 46,340: exact without 64-bit integers.

    Args:
        tokens: int32 `(..., T)`, PAD after the last token, all below `MAX_WORDS`.
        xp: `keras.ops` or `numpy`. Defaults to `keras.ops`.

    Returns:
        A pair of int32 `(..., 4, T)`, keys for n from 1 to 4 and every position; both
        are 0 if no n-gram of length n starts there.
    """
    length = xp.shape(tokens)[-1]
    no_padding = [(0, 0)] * (len(tokens.shape) - 1)
    padded = xp.pad(tokens, [*no_padding, (0, ORDERS - 1)])
    shifted = [padded[..., i : i + length] for i in range(ORDERS)]
    highs, lows = [], []
    for order in range(1, ORDERS + 1):
        exists = shifted[order - 1] != PAD  # its last token
        a, b, c, d = (
            xp.where(exists, shifted[i], 0) if i < order else xp.zeros_like(tokens)
            for i in range(ORDERS)
        )
        highs.append(a * MAX_WORDS + b)
        lows.append(c * MAX_WORDS + d)
    return xp.stack(highs, axis=-2), xp.stack(lows, axis=-2)


def repetitions(high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
    """Counts how often each n-gram of a text occurs in that text.

    Args:
        high, low: int32 `(..., T)`, keys of the n-grams of each position.

    Returns:
        float32 `(..., T)`, how often the n-gram of each position occurs; and bool
        `(..., T)`, whether the position is its first occurrence.
    """
    repeated = ops.logical_and(
        ops.expand_dims(high, -1) == ops.expand_dims(high, -2),
        ops.expand_dims(low, -1) == ops.expand_dims(low, -2),
    )
    positions = ops.arange(ops.shape(high)[-1])
    earlier = ops.expand_dims(positions, 1) > positions
    before = ops.any(ops.logical_and(repeated, earlier), axis=-1)
    first = ops.logical_and(high != 0, ops.logical_not(before))
    return ops.sum(ops.cast(repeated, "float32"), axis=-1), first


def check_tokens(name: str, tokens: Tensor, shape: str) -> None:
    """Raises `InputError` unless tokens are integers of the rank of a shape."""
    dtype = keras.backend.standardize_dtype(tokens.dtype)
    if len(tokens.shape) != shape.count(",") + 1 or "int" not in dtype:
        raise InputError(
            f"`{name}` must be integer tokens of shape {shape}. Received: {dtype} of "
            f"shape {tuple(tokens.shape)}"
        )


def by_image(
    captions: Tensor, references: Tensor, include_eos: bool
) -> tuple[Tensor, Tensor]:
    """Captions by image, int32 `(batch, C, T)`, and references, with or without EOS.

    Args:
        captions: int `(batch * C, T)`.
        references: int `(batch, R, T')`.
        include_eos: bool, whether EOS stays; else it becomes PAD.

    Raises:
        InputError: If they are no tokens of these shapes.
    """
    check_tokens("captions", captions, "(batch * C, T)")
    check_tokens("references", references, "(batch, R, T)")
    captions, references = (ops.cast(x, "int32") for x in (captions, references))
    if not include_eos:
        captions, references = (
            ops.where(x == EOS, PAD, x) for x in (captions, references)
        )
    shape = ops.shape(references)[0], -1, ops.shape(captions)[-1]
    return ops.reshape(captions, shape), references


def by_caption(scores: Tensor, captions: Tensor, references: Tensor) -> Tensor:
    """Scores of all captions, float32 `(batch * C,)`; NaN if an n-gram has no key.

    Args:
        scores: float32 `(batch, C)`.
        captions: int32 `(batch, C, T)`.
        references: int32 `(batch, R, T')`.
    """
    have_keys = ops.logical_and(
        ops.all(has_key(captions), axis=-1),
        ops.all(has_key(references), axis=(1, 2), keepdims=True)[..., 0],
    )
    return ops.reshape(ops.where(have_keys, scores, float("nan")), (-1,))


def has_key(tokens: Tensor) -> Tensor:
    """Returns which tokens are in the range for which n-grams have keys."""
    return ops.logical_and(tokens >= 0, tokens < MAX_WORDS)


def occurrences(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> Tensor:
    """Counts the n-grams of each caption in each reference.

    Args:
        ours: dict of `high` and `low`, keys of the captions' n-grams.
        theirs: dict of `high` and `low`, keys of the references' n-grams.

    Returns:
        float32 `(images, 4, C, T, R)`.
    """

    def flat(keys, axis):
        images, orders, count, length = ops.shape(keys)
        return ops.expand_dims(
            ops.reshape(keys, (images, orders, count * length)), axis
        )

    # (images, 4, C * T, R * T'): captions and references in one comparison each.
    same = ops.logical_and(
        flat(ours["high"], 3) == flat(theirs["high"], 2),
        flat(ours["low"], 3) == flat(theirs["low"], 2),
    )
    per_image, length = ops.shape(theirs["high"])[2:]
    same = ops.reshape(same, (*ops.shape(ours["high"]), per_image, length))
    return ops.sum(ops.cast(same, "float32"), axis=-1)
