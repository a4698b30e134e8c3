"""From pairs of sentences to batches of similar length, with a budget of tokens."""

import itertools

import numpy as np
import tensorflow as tf

from keras_caption.arguments import Count, CountOrZero, check
from keras_caption.errors import InputError
from keras_caption.text import PAD, Tokenizer, teacher_forcing

SHUFFLE_BUFFER = 100_000  # pairs that are shuffled among each other
SHORTEST, GROWTH = 8, 1.1  # of the lengths that batches are made for


class TokenizedPairs:
    """Pairs of sentences as token ids, for training a translator.

    Args:
        pairs: Finite tf.data dataset of dicts with `source` and `target`, string
            scalars, as those of `ParallelText.read`.
        source_tokenizer, target_tokenizer: Tokenizers; they may be the same.
        max_length: int, greatest number of tokens of either sentence, with EOS. Pairs
            that are longer are dropped, and counted.

    Attributes:
        lengths: int NumPy `(pairs,)`, number of tokens of the longer sentence.
        dropped: int, number of pairs that are longer than `max_length`.

    Raises:
        InputError: If no pair is left.
    """

    def __init__(
        self,
        pairs,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_length: int = 256,
    ):
        check(Count, max_length=max_length)
        self.max_length = max_length

        sources, targets = [], []
        for pair in pairs.as_numpy_iterator():
            source = source_tokenizer.encode(pair["source"].decode())[1:]  # no BOS
            target = target_tokenizer.encode(pair["target"].decode())
            sources.append(np.array(source, "int32"))
            targets.append(np.array(target, "int32"))
        both = zip(sources, targets, strict=True)
        lengths = np.array([max(len(x), len(y) - 1) for x, y in both])
        kept = lengths <= max_length
        if not kept.any():
            raise InputError(
                f"None of the {len(lengths):,} pairs of sentences has at most "
                f"{max_length} tokens."
            )
        self.lengths = lengths[kept]
        self.dropped = len(lengths) - len(self.lengths)
        ragged = {
            "source": to_ragged(itertools.compress(sources, kept)),
            "tokens": to_ragged(itertools.compress(targets, kept)),
        }
        # Rows of ragged tensors, and then plain tensors.
        self._pairs = tf.data.Dataset.from_tensor_slices(ragged).map(dict)

    def steps_per_epoch(self, tokens_per_batch: int) -> int:
        """Number of batches of an epoch, see `batches`."""
        boundaries, sizes = self._buckets(tokens_per_batch)
        bucket_of = np.searchsorted(boundaries, self.lengths, side="right")
        counts = np.bincount(bucket_of, minlength=len(sizes))
        return int(np.sum(-(-counts // sizes)))

    def batches(self, tokens_per_batch: int, seed: int = 0, first_epoch: int = 0):
        """Endless batches of sentences of similar length, epoch after epoch.

        What an epoch holds depends on `seed` and the epoch's number alone, so that a
        run resumed at epoch k sees what an uninterrupted one does. Each pair is in one
        batch of every epoch.

        Args:
            tokens_per_batch: int, most tokens of a batch, padding included, in the
                source or in the target, whichever are more.
            seed: int.
            first_epoch: int, number of the epoch to begin with.

        Returns:
            tf.data dataset of inputs, targets and weights, see
            `keras_caption.data.teacher_forcing`. The inputs are a dict of `source`,
            int32 `(B, S)`, to EOS, then PAD, and `tokens`, int32 `(B, T)`.

        Raises:
            InputError: If a batch could not hold a pair of `max_length` tokens.
        """
        check(CountOrZero, seed=seed, first_epoch=first_epoch)
        boundaries, sizes = self._buckets(tokens_per_batch)

        def batches_of_epoch(epoch):
            # Of this graph alone: the order depends on no seed set elsewhere.
            tf.random.set_seed(seed + 1)
            order = self._pairs.shuffle(SHUFFLE_BUFFER, seed=epoch)
            return order.bucket_by_sequence_length(
                length_of, boundaries, sizes, padding_values=PAD
            ).map(teacher_forcing, tf.data.AUTOTUNE)

        epochs = tf.data.Dataset.counter(first_epoch)
        return epochs.flat_map(batches_of_epoch).prefetch(tf.data.AUTOTUNE)

    def _buckets(self, tokens_per_batch):
        """Lengths at which another batch size begins, and the sizes."""
        check(Count, tokens_per_batch=tokens_per_batch)
        if tokens_per_batch < self.max_length:
            raise InputError(
                f"A batch of {tokens_per_batch} tokens cannot hold a pair of "
                f"max_length={self.max_length} tokens."
            )
        longest = [min(SHORTEST, self.max_length)]
        while longest[-1] < self.max_length:
            longer = max(longest[-1] + 1, int(longest[-1] * GROWTH))
            longest.append(min(longer, self.max_length))
        sizes = [tokens_per_batch // length for length in longest]
        # The last bucket, of longer pairs, stays empty.
        return [length + 1 for length in longest], [*sizes, 1]


def to_ragged(rows):
    """Rows of different lengths, NumPy arrays, as a ragged tensor."""
    rows = list(rows)
    return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [*map(len, rows)])


def length_of(pair):
    """Number of tokens of the longer sentence of a pair, int32 scalar.

    BOS is not counted: neither the inputs nor the targets of training hold both ends.
    """
    return tf.maximum(tf.size(pair["source"]), tf.size(pair["tokens"]) - 1)
