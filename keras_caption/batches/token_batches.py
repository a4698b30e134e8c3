"""Batches of sentence pairs of similar length, with a budget of tokens."""

import itertools

import numpy as np
import tensorflow as tf

from keras_caption.base.arguments import Count, CountOrZero, check
from keras_caption.base.compilation import round_up
from keras_caption.base.errors import InputError
from keras_caption.batches.few_shapes import pad
from keras_caption.batches.pipeline import endless, grouped
from keras_caption.text import PAD, Tokenizer, teacher_forcing


class TokenizedPairs:
    """Pairs of sentences as token ids, for training a translator.

    Args:
        pairs: Finite tf.data dataset of dicts with `source` and `target`, string
            scalars, as those of `ParallelText.read`.
        source_tokenizer, target_tokenizer: Tokenizers; they may be the same.
        max_length: int, greatest number of tokens of either sentence, with EOS. Longer
            pairs are dropped and counted.
        few_shapes: bool, whether batches have few shapes, as XLA compiles a step for
            each: sentences are padded to lengths that
            `keras_caption.compilation.round_up` returns, and a batch has as many as
            fit. The batch of the shortest pairs is filled up with pairs of the next.

    Attributes:
        lengths: int NumPy `(pairs,)`, number of tokens of the longer sentence.
        dropped: int, number of pairs longer than `max_length`.

    Raises:
        InputError: If no pair is left.
    """

    def __init__(
        self,
        pairs,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_length: int = 256,
        few_shapes: bool = False,
    ):
        check(Count, max_length=max_length)
        self.max_length = max_length
        self.few_shapes = few_shapes

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
        self._sources = to_ragged(itertools.compress(sources, kept))
        self._targets = to_ragged(itertools.compress(targets, kept))

    def steps_per_epoch(
        self, tokens_per_batch: int, group: int = 1, replicas: int = 1
    ) -> int:
        """Returns the number of batches, or of groups of them, in an epoch."""
        return len(self._places(tokens_per_batch, group, replicas)) // group

    def batches(
        self,
        tokens_per_batch: int,
        seed: int = 0,
        first_epoch: int = 0,
        group: int = 1,
        part: tuple[int, int] = (0, 1),
    ):
        """Makes endless batches of sentence pairs of similar length.

        Pairs are sorted by length, in random order within a length, and cut into
        batches, which come in random order: if an epoch ended with the longest
        sentences, the model's translations would be too long.

        The batches of an epoch depend on `seed` and the epoch's number alone, so that a
        run resumed at epoch k sees the same batches as an uninterrupted one. Each pair
        is in one batch of every epoch.

        Args:
            tokens_per_batch: int, greatest number of tokens of a batch, padding
                included, in the source or in the target, whichever has more.
            seed: int.
            first_epoch: int, number of the first epoch.
            group: int, number of batches in an update of `AccumulatingTrainer`. The
                largest batches are halved until the number of batches in an epoch is a
                multiple of it. Defaults to 1, no groups.
            part: Pair of int, the index of the part of each batch to take, and the
                number of parts, one for each replica. Every part has at least one pair:
                the last batches take pairs of earlier ones if necessary. Defaults to
                the whole batch.

        Returns:
            tf.data dataset of inputs, targets and weights, see
            `keras_caption.text.teacher_forcing`, or of groups of them, see
            `keras_caption.batches.grouped`. The inputs are a dict of `source`, int32
            `(B, S)`, to EOS, then PAD, and `tokens`, int32 `(B, T)`.

        Raises:
            InputError: If a part of a batch could not hold a pair of `max_length`
                tokens, or there are fewer batches than a group has.
        """
        check(CountOrZero, seed=seed, first_epoch=first_epoch)
        number, parts = part
        places = tf.constant(self._places(tokens_per_batch, group, parts))
        lengths = tf.constant(self.lengths)

        def batches_of_epoch(epoch):
            seeds = tf.stack([tf.constant(seed, tf.int64), epoch])
            order = tf.random.experimental.stateless_shuffle(
                tf.range(len(self.lengths)), seeds
            )
            by_length = tf.argsort(tf.gather(lengths, order), stable=True)
            order = tf.gather(order, by_length)

            def batch(i):
                first, end, longest = tf.unstack(places[i])
                count = end - first
                start = first + count * number // parts
                rows = order[start : first + count * (number + 1) // parts]
                source, tokens = (
                    tf.gather(x, rows).to_tensor(PAD)
                    for x in (self._sources, self._targets)
                )
                if self.few_shapes:
                    source = pad(source, (tf.size(rows), longest))
                    tokens = pad(tokens, (tf.size(rows), longest + 1))
                return teacher_forcing({"source": source, "tokens": tokens})

            numbers = tf.random.experimental.stateless_shuffle(
                tf.range(len(places)), seeds
            )
            numbers = tf.data.Dataset.from_tensor_slices(numbers)
            batches = numbers.map(batch, tf.data.AUTOTUNE)
            return batches if group == 1 else grouped(batches, group)

        return endless(batches_of_epoch, first_epoch)

    def _places(self, tokens_per_batch, group, parts=1):
        """Cuts the pairs, sorted by length, into batches.

        Returns:
            int32 `(batches, 3)`: for each batch, the index of its first pair, the index
            after its last pair, and the number of tokens of its longest sentence.
        """
        check(Count, tokens_per_batch=tokens_per_batch, group=group)
        if tokens_per_batch < parts * self.max_length:
            whose = f" for each of {parts} replicas" if parts > 1 else ""
            raise InputError(
                f"A batch of {tokens_per_batch} tokens cannot hold a pair of "
                f"max_length={self.max_length} tokens{whose}."
            )
        lengths = np.sort(self.lengths).tolist()
        cut = full_batches if self.few_shapes else least_padded_batches
        places = cut(lengths, tokens_per_batch, group, parts)
        if len(places) % group or min(end - first for first, end, _ in places) < parts:
            raise InputError(
                f"An update of {group:,} batches does not fit an epoch: its "
                f"{len(lengths):,} pairs of sentences make {len(places):,} batches of "
                f"{tokens_per_batch:,} tokens"
                f"{f', for {parts} replicas each' if parts > 1 else ''}."
            )
        return np.array(places, "int32")


# === Batches of pairs sorted by length, each as (first, end, longest sentence) ===


def least_padded_batches(
    lengths: list[int], tokens_per_batch: int, group: int, parts: int
) -> list[tuple[int, int, int]]:
    """Cuts batches where they are full; each pair is in one batch.

    The largest batches are halved until the number of batches is a multiple of `group`.
    """
    total, starts = len(lengths), [0]
    for i, length in enumerate(lengths):
        if (i + 1 - starts[-1]) * length > tokens_per_batch:
            starts.append(i)
    # Backwards, starts move so far ahead that each batch has a pair for every part.
    latest = total - parts
    for i in reversed(range(len(starts))):
        starts[i] = max(0, min(starts[i], latest))
        latest = starts[i] - parts
    count = len(starts)
    for _ in range(-count % group if group <= count else 0):
        sizes = np.diff([*starts, total])
        largest = int(sizes.argmax())
        starts.insert(largest + 1, starts[largest] + int(sizes[largest]) // 2)
    edges = [*starts, total]
    return [(a, b, lengths[b - 1]) for a, b in itertools.pairwise(edges)]


def full_batches(
    lengths: list[int], tokens_per_batch: int, group: int, parts: int
) -> list[tuple[int, int, int]]:
    """Cuts batches that are full at the rounded length of their longest sentence.

    Cuts from the longest pairs on. The largest batches are halved until the number of
    batches is a multiple of `group`.
    """
    places: list[tuple[int, int, int]] = []
    end = len(lengths)
    while end:
        longest = round_up(lengths[end - 1])
        rows = max(tokens_per_batch // longest // parts, 1) * parts
        if rows > end and places:  # too few pairs: the shape of the batch before
            first, last, longest = places[-1]
            rows = end = last - first
        first = max(0, end - rows)
        places.append((first, end, longest))
        end = first
    for _ in range(-len(places) % group if group <= len(places) else 0):
        first, end, longest = max(places, key=lambda place: place[1] - place[0])
        middle = first + (end - first) // 2 // parts * parts
        places.remove((first, end, longest))
        places += [(first, middle, longest), (middle, end, longest)]
    return places


def to_ragged(rows):
    """Converts NumPy arrays of different lengths to a ragged tensor."""
    rows = list(rows)
    return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [*map(len, rows)])
