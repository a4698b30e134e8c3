from typing import Any

import keras
from jaxtyping import Float32, Int
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.rewards.ngrams import (
    by_caption,
    by_image,
    ngram_keys,
    occurrences,
    repetitions,
)
from keras_caption.text import PAD


class SentenceBleu(keras.layers.Layer):
    """Smoothed sentence BLEU of texts given as tokens, computed in the graph.

    For n from 1 to 4, let t_n be the number of n-grams of a text, and m_n the number of
    those that occur in a reference, where an n-gram counts at most as often as in the
    reference that has it most often. The score, from 0 to 1, is

        min(1, exp(1 - r / c)) (p_1 p_2 p_3 p_4)^(1/4)
        p_1 = m_1 / t_1,  p_n = (m_n + 1) / (t_n + 1) for n > 1

    with c tokens in the text, and r tokens in the reference whose length is closest to
    c, the shorter one on a tie. It equals sacreBLEU's `sentence_score` with
    `smooth_method="add-k"` and `smooth_value=1` on the same tokens. It compiles with
    XLA: no strings, no Python, no sparse tensors.

    Self-critical training counts EOS as a token, which rewards complete endings; the
    evaluation metric does not.

    Args:
        include_eos: bool, whether EOS is a token. Defaults to `True`.
        **kwargs: Further arguments of `keras.layers.Layer`.

    Call arguments:
        captions: int `(batch * C, T)`, C adjacent texts for each example: tokens, EOS,
            then PAD. A text that was truncated has no EOS.
        references: int `(batch, R, T')`, in the same format. References that are all
            PAD are padding.

    Returns:
        float32 `(batch * C,)`, 0 for an empty text; NaN if a token of the text or of
        its references is outside 0 to 46,339, as its n-grams have no keys.

    References:
        Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine
        Translation", ACL 2002; Lin and Och, "ORANGE: a Method for Evaluating
        Automatic Evaluation Metrics for Machine Translation", COLING 2004.
    """

    def __init__(self, include_eos: bool = True, **kwargs: Any):
        super().__init__(dtype="float32", trainable=False, **kwargs)
        self.include_eos = include_eos
        self.built = True

    def call(
        self,
        captions: Int[Tensor, "batch*C T"],
        references: Int[Tensor, "batch R T_reference"],
    ) -> Float32[Tensor, " batch*C"]:
        captions, references = by_image(captions, references, self.include_eos)
        scores = precision(captions, references) * brevity(captions, references)
        return by_caption(scores, captions, references)


def precision(captions: Tensor, references: Tensor) -> Tensor:
    """Computes the geometric mean of smoothed precisions, float32 `(batch, C)`."""
    ours, theirs = keys_of(captions), keys_of(references)
    count, first = repetitions(**ours)
    most = ops.max(occurrences(ours, theirs), axis=-1)
    matches = ops.sum(ops.where(first, ops.minimum(count, most), 0.0), axis=-1)
    total = ops.sum(ops.cast(ours["high"] != 0, "float32"), axis=-1)
    unigram = matches[:, :1] / ops.maximum(total[:, :1], 1.0)
    longer = (matches[:, 1:] + 1.0) / (total[:, 1:] + 1.0)
    product = ops.prod(ops.concatenate([unigram, longer], axis=1), axis=1)
    return ops.sqrt(ops.sqrt(product))  # p^(1/4)


def brevity(captions: Tensor, references: Tensor) -> Tensor:
    """Computes the brevity penalty, float32 `(batch, C)`."""
    ours = ops.expand_dims(length_of(captions), -1)
    theirs = ops.expand_dims(length_of(references), 1)
    # By distance; the second term, below 1/2, prefers the shorter of equally close
    # references. Padding, of length 0, comes last.
    order = ops.abs(theirs - ours) + theirs / (2.0 * ops.max(theirs) + 2.0)
    order = ops.where(theirs == 0, float("inf"), order)
    nearest = ops.argmin(order, axis=-1)
    nearest = ops.take_along_axis(
        ops.broadcast_to(theirs, ops.shape(order)),
        ops.expand_dims(nearest, -1),
        axis=-1,
    )
    ratio = nearest / ops.maximum(ours, 1.0)
    return ops.exp(ops.minimum(0.0, 1.0 - ratio))[..., 0]


def keys_of(tokens: Tensor) -> dict[str, Tensor]:
    """Encodes n-grams as keys, a dict of two int32 `(batch, 4, C, T)`."""
    high, low = (ops.swapaxes(keys, 1, 2) for keys in ngram_keys(tokens))
    return {"high": high, "low": low}


def length_of(tokens: Tensor) -> Tensor:
    """Counts the tokens of texts, float32."""
    return ops.sum(ops.cast(tokens != PAD, "float32"), axis=-1)
