import dataclasses
import os
from typing import Any, Self

import numpy as np
from jaxtyping import Int
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError
from keras_caption.formats.document_frequencies import read_document_frequencies
from keras_caption.rewards.ngrams import MAX_WORDS, ngram_keys
from keras_caption.text import PAD, Vocabulary

# Images whose n-grams are counted at once, which bounds the memory.
CHUNK = 5000


@dataclasses.dataclass(frozen=True, eq=False)
class DocumentFrequencies:
    """Document frequencies: the number of images that have an n-gram.

    Attributes:
        keys: int32 `(ngrams, 2)`, the n-grams, see `ngram_keys`.
        counts: int32 `(ngrams,)`, at least 1, the number of images of each n-gram.
        images: int, number of images of the corpus.
    """

    keys: np.ndarray
    counts: np.ndarray
    images: int

    @classmethod
    def count(cls, references: Int[np.ndarray, "images R T"]) -> Self:
        """Counts the n-grams of all captions of every image.

        Args:
            references: int array `(images, R, T)`, tokens from 0 to 46,339, with PAD
                after the last token of each reference.

        Raises:
            InputError: If the references have another shape, type or range.
        """
        references = check_references(references)
        ngrams, counts = np.zeros(0, "int64"), np.zeros(0, "int64")
        for start in range(0, len(references), CHUNK):
            chunk = references[start : start + CHUNK]
            # Both halves of a key in one int64, which NumPy sorts; (images, n-grams).
            high, low = (k.astype("int64") for k in ngram_keys(chunk, np))
            keys = ((high << 32) | low).reshape(len(chunk), -1)
            keys.sort(axis=1)
            first = keys != 0
            first[:, 1:] &= keys[:, 1:] != keys[:, :-1]  # once per image
            keys, new_counts = np.unique(keys[first], return_counts=True)
            ngrams, index = np.unique(np.append(ngrams, keys), return_inverse=True)
            counts = np.bincount(index, np.append(counts, new_counts)).astype("int64")
        keys = np.stack([ngrams >> 32, ngrams & 0xFFFFFFFF], axis=1).astype("int32")
        return cls(keys, counts.astype("int32"), len(references))

    def save(self, path: str | os.PathLike, vocabulary: Vocabulary) -> None:
        """Writes the document frequencies and the words of their tokens as `.npz`."""
        with replacing(path) as partial, open(partial, "wb") as file:
            np.savez_compressed(
                file,
                keys=self.keys,
                counts=self.counts,
                images=self.images,
                words=np.array(vocabulary.words),
            )

    @classmethod
    def load(cls, path: str | os.PathLike, vocabulary: Vocabulary) -> Self:
        """Reads a file that `save` wrote.

        Raises:
            InputError: If the file is missing, damaged or of another format, or was
                written for another vocabulary.
        """
        keys, counts, images, words = read_document_frequencies(path)
        if words != vocabulary.words:
            raise InputError(
                f"The document frequencies of {path} are of another vocabulary, of "
                f"{len(words):,} words; the model's has {len(vocabulary):,}."
            )
        if np.max(np.divmod(keys, MAX_WORDS), initial=0) >= len(words):
            raise InputError(
                f"{path} holds no document frequencies: an n-gram has a token beyond "
                f"the {len(words):,} words."
            )
        return cls(keys, counts, images)


def check_references(references: Any) -> np.ndarray:
    """Validates references and converts them to int32; see `count`."""
    try:
        references = np.asarray(references)
    except ValueError:
        raise InputError("References must be an array; these are ragged.") from None
    if references.ndim != 3 or not np.issubdtype(references.dtype, np.integer):
        raise InputError(
            "References must be integer tokens of shape (images, R, T), received "
            f"{references.dtype} of shape {references.shape}."
        )
    if not references.size:
        raise InputError(f"There are no references: their shape is {references.shape}.")
    if references.min() < 0 or references.max() >= MAX_WORDS:
        raise InputError(
            f"Tokens of references must be from 0 to {MAX_WORDS - 1:,}, received "
            f"{references.min():,} to {references.max():,}."
        )
    if np.any((references[..., :-1] == PAD) & (references[..., 1:] != PAD)):
        raise InputError("References must have PAD only after their last token.")
    return references.astype("int32")


def bucket_of(high: Tensor, low: Tensor, buckets: int, xp: Any = ops) -> Tensor:
    """Hashes the key of an n-gram to a bucket below `buckets`, a power of two."""
    # Multiplicative hashing: odd constants near 2^32 divided by the golden ratio, and
    # of MurmurHash; the shift brings high bits down to the mask.
    mixed = high * -1640531535 + low * 1540483477  # int32, wraps around
    mixed = xp.bitwise_xor(mixed, xp.right_shift(mixed, 15))
    return xp.bitwise_and(mixed, buckets - 1)


class FrequencyTable:
    """A hash table of document frequencies for look-ups in the graph.

    N-grams are sorted by bucket, the hash of their keys. A look-up compares as many
    entries as the fullest bucket has. The table takes 12 bytes for each n-gram and 4
    for each bucket; the number of buckets is the number of n-grams, rounded up to a
    power of two.

    Args:
        frequencies: `DocumentFrequencies`.

    Attributes:
        buckets: int, number of buckets.
        probes: int, number of entries that a look-up compares.
        starts: int32 `(buckets,)`, index of the first entry of each bucket.
        entries: int32 `(ngrams + probes, 3)`, keys and counts of n-grams, padded.
    """

    def __init__(self, frequencies: DocumentFrequencies):
        size = max(len(frequencies.keys), 1)
        self.buckets = 1 << (size - 1).bit_length()
        with np.errstate(over="ignore"):
            first, second = frequencies.keys.T
            bucket = bucket_of(first, second, self.buckets, np)
        order = np.argsort(bucket, kind="stable")
        edges = np.searchsorted(bucket[order], np.arange(self.buckets + 1))
        self.probes = int(np.diff(edges).max(initial=0))
        entries = np.column_stack([frequencies.keys, frequencies.counts])[order]
        # Look-ups in the last buckets may read past the last n-gram.
        self.entries = np.pad(entries, [(0, self.probes), (0, 0)]).astype("int32")
        self.starts = edges[:-1].astype("int32")
