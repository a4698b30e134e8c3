import dataclasses

import numpy as np
from keras import ops

from keras_caption.atomic import replacing
from keras_caption.errors import InputError
from keras_caption.formats.document_frequencies import read_document_frequencies
from keras_caption.rewards.ngrams import MAX_WORDS, ngram_keys
from keras_caption.text import PAD

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
            references: int array `(images, R, T)`, tokens from 0 to 46,339, PAD after
                the last of each reference.

        Raises:
            InputError: If the references are of another form.
        """
        references = check_references(references)
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
            InputError: If it was written for another vocabulary, or is no such file,
                or damaged.
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


def check_references(references):
    """The references as int32, if they have the form that `count` needs."""
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
