import math
from typing import Any, Self

import keras
import numpy as np
from jaxtyping import Float32, Int
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.rewards.document_frequencies import (
    DocumentFrequencies,
    FrequencyTable,
    bucket_of,
    check_references,
)
from keras_caption.rewards.ngrams import (
    by_caption,
    by_image,
    ngram_keys,
    occurrences,
    repetitions,
)
from keras_caption.text import EOS, PAD

SIGMA = 6.0  # of the Gaussian penalty of lengths, as in pycocoevalcap
# Type of the look-up tables. TensorFlow has no int32 variables on GPUs, and JAX has no
# int64 by default; the values looked up are cast to int32 on both.
TABLE_DTYPE = "int64" if keras.backend.backend() == "tensorflow" else "int32"


class CiderD(keras.layers.Layer):
    """CIDEr-D of captions given as tokens, computed in the graph.

    For n from 1 to 4, let h_g and r_g be the numbers of times that an n-gram g occurs
    in a caption and in a reference, and idf_g = log(images) - log(max(1, document
    frequency of g)). The score is

        sum_g min(h_g, r_g) r_g idf_g^2 / (|h idf| |r idf|) exp(-d^2 / (2 * 6^2))

    where d is the difference of their numbers of bigrams; it is averaged over n and
    over references, and multiplied by 10. It equals pycocoevalcap's `Cider` on the same
    tokens and document frequencies. It compiles with XLA: no strings, no Python, no
    sparse tensors.

    Self-critical training counts EOS as a token of the n-grams, which rewards complete
    endings; the evaluation metric does not.

    Args:
        document_frequencies: `DocumentFrequencies` of the training references.
        include_eos: bool, whether EOS is a token of the n-grams. Defaults to `True`.
        **kwargs: Further arguments of `keras.layers.Layer`.

    Call arguments:
        captions: int `(batch * C, T)`, C adjacent captions for each image: tokens, EOS,
            then PAD. A caption that was truncated has no EOS.
        references: int `(batch, R, T')`, in the same format. References that are all
            PAD are padding.

    Returns:
        float32 `(batch * C,)`; NaN if a token of the caption or of its references is
        outside 0 to 46,339, as its n-grams have no keys.

    Example:

    ```python
    reward = kc.rewards.CiderD.from_references(training_references)
    scores = reward(captions, references)
    ```

    Reference:
        Vedantam et al., "CIDEr: Consensus-based Image Description Evaluation",
        CVPR 2015.
    """

    def __init__(
        self,
        document_frequencies: DocumentFrequencies,
        include_eos: bool = True,
        **kwargs: Any,
    ):
        super().__init__(dtype="float32", trainable=False, **kwargs)
        self.document_frequencies = document_frequencies
        self.include_eos = include_eos
        self.log_images = math.log(max(document_frequencies.images, 1))
        table = FrequencyTable(document_frequencies)
        self.buckets, self.probes = table.buckets, table.probes
        self.starts = self._constant(table.starts, "starts")
        self.entries = self._constant(table.entries, "entries")
        self.built = True

    @classmethod
    def from_references(
        cls,
        references: Int[np.ndarray, "images R T"],
        include_eos: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Builds the reward from the document frequencies of references.

        Args:
            references: int array `(images, R, T)`, tokens below 46,340, EOS, then PAD.
            include_eos: bool, whether EOS is a token of the n-grams. Defaults to
                `True`.
            **kwargs: Further arguments of the layer.

        Raises:
            InputError: If the references have another shape, type or range.
        """
        references = check_references(references)
        if not include_eos:
            references = np.where(references == EOS, PAD, references)
        return cls(DocumentFrequencies.count(references), include_eos, **kwargs)

    def _constant(self, values, name):
        weight = self.add_weight(
            values.shape,
            initializer="zeros",
            dtype=TABLE_DTYPE,
            trainable=False,
            name=name,
        )
        weight.assign(values)
        return weight

    def call(
        self,
        captions: Int[Tensor, "batch*C T"],
        references: Int[Tensor, "batch R T_reference"],
    ) -> Float32[Tensor, " batch*C"]:
        with_eos = references
        captions, references = by_image(captions, references, self.include_eos)
        # A reference of EOS alone is valid, though `by_image` may remove the EOS.
        valid = ops.cast(ops.any(with_eos != PAD, axis=-1), "float32")
        ours, theirs = self._weigh(captions), self._weigh(references)

        # r_g idf_g of each n-gram of a caption, (images, 4, C, T, R).
        shared = occurrences(ours, theirs) * ops.expand_dims(ours["idf"], -1)
        clipped = ops.minimum(ops.expand_dims(ours["weight"], -1), shared)
        # A repeated n-gram is one term of the sum.
        products = ops.where(ops.expand_dims(ours["first"], -1), clipped * shared, 0.0)
        norms = ops.expand_dims(ours["norm"], -1) * ops.expand_dims(theirs["norm"], 2)
        # (images, 4, C, R). A caption without n-grams has norm 0, and cosine 0.
        cosines = ops.sum(products, axis=3) / ops.where(norms > 0, norms, 1.0)
        # pycocoevalcap measures lengths in bigrams, not in tokens.
        gap = ops.expand_dims(ours["bigrams"], -1) - ops.expand_dims(
            theirs["bigrams"], 1
        )
        penalty = ops.exp(-ops.square(gap) / (2 * SIGMA**2))
        scores = 10.0 * ops.mean(cosines, axis=1) * penalty
        valid = ops.expand_dims(valid, 1)
        # An image may have no references at all.
        count = ops.maximum(ops.sum(valid, axis=-1), 1.0)
        scores = ops.sum(scores * valid, axis=-1) / count
        return by_caption(scores, captions, references)

    def _weigh(self, tokens):
        """Weighs the n-grams of captions `(images, C, T)` by tf-idf.

        Returns a dict of tensors `(images, 4, C, T)`, a value for each n and position,
        and of `norm`, `(images, 4, C)`, and `bigrams`, `(images, C)`.
        """
        high, low = (ops.swapaxes(keys, 1, 2) for keys in ngram_keys(tokens))
        count, first = repetitions(high, low)
        idf = self.log_images - ops.log(self._document_frequency(high, low))
        weight = count * idf
        squares = ops.where(first, ops.square(weight), 0.0)
        return {
            "high": high,
            "low": low,
            "first": first,
            "idf": idf,
            "weight": weight,
            "norm": ops.sqrt(ops.sum(squares, axis=-1)),
            "bigrams": ops.sum(ops.cast(high[:, 1] != 0, "float32"), axis=-1),
        }

    def _document_frequency(self, high, low):
        """Looks up the number of images with each n-gram, at least 1."""

        def look_up(table, places):
            return ops.cast(ops.take(table, places, axis=0), "int32")

        start = look_up(self.starts, bucket_of(high, low, self.buckets))
        frequency = ops.ones_like(high)
        # All entries of the fullest bucket are compared: a loop of constant length.
        for probe in range(self.probes):
            entry = look_up(self.entries, start + probe)
            match = ops.logical_and(entry[..., 0] == high, entry[..., 1] == low)
            frequency = ops.where(match, entry[..., 2], frequency)
        return ops.cast(frequency, "float32")
