from typing import Any

from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.text import PAD

ORDERS = 4  # n-grams of one to four tokens

# The greatest vocabulary size for which the keys below fit into 31 bits.
MAX_WORDS = 46_340


def ngram_keys(tokens: Tensor, xp: Any = ops) -> tuple[Tensor, Tensor]:
    """Encodes the n-grams of captions as unique pairs of int32.

    An n-gram of up to four tokens (t1, t2, t3, t4), with 0 for missing ones, becomes
    the pair (t1 V + t2, t3 V + t4) with V = 46,340: exact without 64-bit integers.

    Args:
        tokens: int32 `(..., T)`, PAD after the last token, all below `MAX_WORDS`.
        xp: `keras.ops` or `numpy`. Defaults to `keras.ops`.

    Returns:
        A pair of int32 `(..., 4, T)`, for n from 1 to 4 and every position; both are 0
        if no n-gram of length n begins there.
    """
    length = xp.shape(tokens)[-1]
    no_padding = [(0, 0)] * (len(tokens.shape) - 1)
    padded = xp.pad(tokens, [*no_padding, (0, ORDERS - 1)])
    shifted = [padded[..., i : i + length] for i in range(ORDERS)]
    highs, lows = [], []
    for order in range(1, ORDERS + 1):
        exists = shifted[order - 1] != PAD
        a, b, c, d = (
            xp.where(exists, shifted[i], 0) if i < order else xp.zeros_like(tokens)
            for i in range(ORDERS)
        )
        highs.append(a * MAX_WORDS + b)
        lows.append(c * MAX_WORDS + d)
    return xp.stack(highs, axis=-2), xp.stack(lows, axis=-2)
