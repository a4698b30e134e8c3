"""From pairs of sentences to batches of similar length, with a budget of tokens."""

import itertools

import numpy as np
import tensorflow as tf

from keras_caption.arguments import Count, CountOrZero, check
from keras_caption.batches.few_shapes import pad
from keras_caption.batches.pipeline import endless, grouped
from keras_caption.compilation import round_up
from keras_caption.errors import InputError
from keras_caption.text import PAD, Tokenizer, teacher_forcing


class TokenizedPairs:
    """Pairs of sentences as token ids, for training a translator.

    Args:
        pairs: Finite tf.data dataset of dicts with `source` and `target`, string
            scalars, as those of `ParallelText.read`.
        source_tokenizer, target_tokenizer: Tokenizers; they may be the same.
        max_length: int, greatest number of tokens of either sentence, with EOS. Pairs
            that are longer are dropped, and counted.
        few_shapes: bool, whether batches have few shapes, for each of which XLA
            compiles a step: sentences are padded to lengths that
            `keras_caption.compilation.round_up` returns, and there are as many as fit.
            The batch of the shortest has some pairs of the next one.

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
        """Number of batches of an epoch, or of groups of them, see `batches`."""
        return len(self._places(tokens_per_batch, group, replicas)) // group

    def batches(
        self,
        tokens_per_batch: int,
        seed: int = 0,
        first_epoch: int = 0,
        group: int = 1,
        part: tuple[int, int] = (0, 1),
    ):
        """Endless batches of sentences of similar length, epoch after epoch.

        Pairs are sorted by length, those of one length in random order, and cut into
        batches, which come in random order. An epoch that ended with its longest
        sentences would leave a model that translates at too great a length.

        What an epoch holds depends on `seed` and the epoch's number alone, so that a
        run resumed at epoch k sees what an uninterrupted one does. Each pair is in one
        batch of every epoch.

        Args:
            tokens_per_batch: int, most tokens of a batch, padding included, in the
                source or in the target, whichever are more.
            seed: int.
            first_epoch: int, number of the epoch to begin with.
            group: int, number of batches that `AccumulatingTrainer` makes one update
                of. An epoch has whole groups: the largest batches are halved until it
                does. Defaults to 1, no groups.
            part: Pair of int, which part of each batch to take, from 0, and of how
                many: of as many parts as there are replicas, each has its own. Every
                part has a pair: the last batches have some of those before if need be.
                Defaults to all of it.

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
        """The batches of groups, of pairs sorted by length.

        Returns:
            int32 `(batches, 3)`, the places of a batch's first pair and behind its
            last, and the number of tokens of its longest sentence.
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


# === Batches of pairs sorted by length: first, end and longest sentence of each ===


def least_padded_batches(
    lengths: list[int], tokens_per_batch: int, group: int, parts: int
) -> list[tuple[int, int, int]]:
    """Batches that are cut where they are full, each pair in one of them.

    Of groups, the largest batches are halved until there are as many as they need.
    """
    total, starts = len(lengths), [0]
    for i, length in enumerate(lengths):
        if (i + 1 - starts[-1]) * length > tokens_per_batch:
            starts.append(i)
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
    """Batches of as many pairs as sentences of a rounded length leave room for.

    They are cut from the longest pairs on. Of groups, the largest batches are halved
    until there are as many as they need.
    """
    places, end = [], len(lengths)
    while end:
        longest = round_up(lengths[end - 1])
        rows = max(tokens_per_batch // longest // parts, 1) * parts
        if rows > end and places:  # as the batch of the next longer ones
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
    """Rows of different lengths, NumPy arrays, as a ragged tensor."""
    rows = list(rows)
    return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [*map(len, rows)])
