import dataclasses

import numpy as np
from keras import ops

from keras_caption.atomic import replacing
from keras_caption.errors import InputError
from keras_caption.formats.frequency_files import read_frequencies
from keras_caption.rewards.ngrams import MAX_WORDS, ngram_keys

# Images whose n-grams are counted at once; bounds the memory that counting takes.
CHUNK = 5000


@dataclasses.dataclass(frozen=True, eq=False)
class DocumentFrequencies:
    """In how many images of a corpus each n-gram occurs.

    Attributes:
        keys: int32 `(ngrams, 2)`, see `ngram_keys`.
        counts: int32 `(ngrams,)`, at least 1.
        images: Number of images of the corpus.
    """

    keys: np.ndarray
    counts: np.ndarray
    images: int

    @classmethod
    def count(cls, references):
        """Counts the n-grams of all captions of every image.

        Args:
            references: int32 `(images, R, T)`, PAD after the last token.

        Raises:
            ValueError: If a token is not below 46,340.
        """
        references = np.asarray(references, "int32")
        if references.size and references.max() >= MAX_WORDS:
            raise ValueError(
                f"Document frequencies are kept for up to {MAX_WORDS:,} words. "
                f"Received token {references.max()}."
            )
        found, counts = np.zeros(0, "int64"), np.zeros(0, "int64")
        for start in range(0, len(references), CHUNK):
            chunk = references[start : start + CHUNK]
            high, low = (k.astype("int64") for k in ngram_keys(chunk, np))
            keys = ((high << 32) | low).reshape(len(chunk), -1)
            keys.sort(axis=1)
            new = keys != 0
            new[:, 1:] &= keys[:, 1:] != keys[:, :-1]  # once an image
            keys, times = np.unique(keys[new], return_counts=True)
            found, where = np.unique(np.append(found, keys), return_inverse=True)
            counts = np.bincount(where, np.append(counts, times)).astype("int64")
        keys = np.stack([found >> 32, found & 0xFFFFFFFF], axis=1).astype("int32")
        return cls(keys, counts.astype("int32"), len(references))

    def save(self, path, vocabulary):
        """Writes them as `.npz`, with the words that their tokens stand for."""
        with replacing(path) as partial, open(partial, "wb") as file:
            np.savez_compressed(
                file,
                keys=self.keys,
                counts=self.counts,
                images=self.images,
                words=np.array(vocabulary.words),
            )

    @classmethod
    def load(cls, path, vocabulary):
        """Reads what `save` wrote.

        Raises:
            InputError: If it was written for another vocabulary, or is no such file.
        """
        keys, counts, images, words = read_frequencies(path)
        if words != vocabulary.words:
            raise InputError(
                f"The document frequencies of {path} are of another vocabulary, of "
                f"{len(words):,} words; the model's has {len(vocabulary):,}."
            )
        return cls(keys, counts, images)


def bucket_of(high, low, buckets, xp=ops):
    """The bucket, from 0 to `buckets` (a power of two) - 1, of an n-gram's key."""
    mixed = high * -1640531535 + low * 1540483477  # wraps around
    mixed = xp.bitwise_xor(mixed, xp.right_shift(mixed, 15))
    return xp.bitwise_and(mixed, buckets - 1)


class FrequencyTable:
    """Document frequencies, laid out for look-up inside the graph.

    N-grams are sorted by a hash of their keys; `starts` says where each bucket
    begins, and the fullest bucket how many entries a look-up must compare. It takes
    12 bytes for each n-gram and 4 for each bucket, of which there are as many,
    rounded up to a power of two.
    """

    def __init__(self, frequencies):
        size = max(len(frequencies.keys), 1)
        self.buckets = 1 << (size - 1).bit_length()
        with np.errstate(over="ignore"):
            bucket = bucket_of(*frequencies.keys.T, self.buckets, np)
        order = np.argsort(bucket, kind="stable")
        edges = np.searchsorted(bucket[order], np.arange(self.buckets + 1))
        self.probes = int(np.diff(edges).max(initial=0))
        entries = np.column_stack([frequencies.keys, frequencies.counts])[order]
        # Look-ups near the end may look past it.
        self.entries = np.pad(entries, [(0, self.probes), (0, 0)]).astype("int32")
        self.starts = edges[:-1].astype("int32")
