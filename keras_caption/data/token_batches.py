"""From pairs of sentences to batches of similar length, with a budget of tokens."""

import numpy as np
import tensorflow as tf

from keras_caption.arguments import Count, CountOrZero, check
from keras_caption.errors import InputError
from keras_caption.text import BOS, EOS, PAD, Tokenizer, teacher_forcing

SHUFFLE_BUFFER = 100_000  # pairs that are shuffled among each other
TOKENIZED_AT_ONCE = 1000  # pairs
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

        def tokenize(pairs):
            source = source_tokenizer.tokenize(pairs["source"])
            target = target_tokenizer.tokenize(pairs["target"])
            bos, eos = (tf.fill((source.nrows(), 1), token) for token in (BOS, EOS))
            return {
                "source": tf.concat([source, eos], 1),
                "tokens": tf.concat([bos, target, eos], 1),
            }

        tokenized = pairs.batch(TOKENIZED_AT_ONCE).map(tokenize, tf.data.AUTOTUNE)
        # Rows of ragged tensors, and then plain tensors.
        tokenized = tokenized.unbatch().map(dict).cache()
        lengths = tokenized.map(length_of).batch(TOKENIZED_AT_ONCE)
        lengths = np.concatenate([*lengths.as_numpy_iterator()])
        kept = lengths <= max_length
        if not kept.any():
            raise InputError(
                f"None of the {len(lengths):,} pairs of sentences has at most "
                f"{max_length} tokens."
            )
        self.lengths = lengths[kept]
        self.dropped = len(lengths) - len(self.lengths)
        self._pairs = tokenized.filter(lambda pair: length_of(pair) <= max_length)

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


def length_of(pair):
    """Number of tokens of the longer sentence of a pair, int32 scalar.

    BOS is not counted: neither the inputs nor the targets of training hold both ends.
    """
    return tf.maximum(tf.size(pair["source"]), tf.size(pair["tokens"]) - 1)
