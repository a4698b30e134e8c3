"""From prepared examples to the batches that models take."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_caption.arguments import Count, CountOrZero, check
from keras_caption.batches.few_shapes import padded_to_few_shapes
from keras_caption.errors import InputError
from keras_caption.inputs import of_example
from keras_caption.text import BOS, EOS, PAD, Tokenizer, Vocabulary, teacher_forcing

# Examples that are shuffled among each other: all of a small dataset that is kept in
# memory; of one that is not, so many.
CACHED_SHUFFLE_BUFFER, SHUFFLE_BUFFER = 10_000, 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How `train_batches` makes batches.

    Attributes:
        captions_per_image: int, number of captions of every image; an image with more
            shows others each epoch, one with fewer repeats some.
        max_words: int, at which longer captions are cut: a number of tokens, words or
            characters.
        seed: int, of the order of the examples.
        cache: bool, whether to keep all that is read in memory. If not, each epoch
            reads the examples anew, and shuffles them within a window of 1,000: what
            `keras_caption.prepare.prepare_photos` writes has been shuffled before.
        few_shapes: bool, whether to pad batches to few shapes, for each of which XLA
            compiles a step: captions to `max_words`, and numbers of regions, frames and
            captions to those that `keras_caption.compilation.round_up` returns.

    Raises:
        InputError: If a number is out of range.
    """

    captions_per_image: int = 5
    max_words: int = 16
    seed: int = 0
    cache: bool = True
    few_shapes: bool = False

    def __post_init__(self):
        check(Count, captions_per_image=self.captions_per_image)
        check(Count, max_words=self.max_words)
        check(CountOrZero, seed=self.seed)
        check(bool, cache=self.cache, few_shapes=self.few_shapes)


def train_batches(
    examples: tf.data.Dataset,
    vocabulary: Tokenizer,
    batch_size: int,
    options: BatchOptions | None = None,
    *,
    inputs: Any = None,
    first_epoch: int = 0,
    keep: Sequence[str] = (),
) -> tf.data.Dataset:
    """Endless batches for training, epoch after epoch in another order.

    What an epoch holds depends on the options and the epoch's number alone, so that a
    run resumed at epoch k sees what an uninterrupted one does. An incomplete last
    batch of an epoch is dropped. A batch serves cross-entropy, and self-critical
    training, which reads nothing of it but the inputs.

    Args:
        examples: Finite tf.data dataset of examples, see
            `keras_caption.datasets.region_features`.
        vocabulary: `keras_caption.text.Tokenizer` of the captions.
        batch_size: int, number of images.
        options: `BatchOptions`. Defaults to those of the papers.
        inputs: Names of what the model reads of an image, such as its `input_specs`;
            others are skipped. Defaults to all that `keras_caption.inputs` knows.
        first_epoch: int, number of the epoch to begin with.
        keep: Names of further tensors of an example that batches hold, padded with
            zeros, such as what a reward reads. Defaults to none.

    Returns:
        tf.data dataset of inputs, targets and weights, see
        `keras_caption.text.teacher_forcing`. The inputs are a dict: what models read,
        see `keras_caption.inputs`; `tokens` int32 `(B, C, T)`, and all captions of
        the images, without BOS, as `references` int32 `(B, R, T')`; sizes are the
        largest of the batch.

    Raises:
        InputError: If a number is out of range, or the examples do not make a batch.

    Example:

    ```python
    options = kc.batches.BatchOptions(captions_per_image=2, seed=1)
    batches = kc.batches.train_batches(examples, vocabulary, 10, options)
    model.fit(batches, steps_per_epoch=100)
    ```
    """
    options = options or BatchOptions()
    check(Count, batch_size=batch_size)
    check(CountOrZero, first_epoch=first_epoch)
    count = int(examples.cardinality())  # negative if it is not known
    if 0 <= count < batch_size:
        raise InputError(f"{count} examples do not make a batch of {batch_size}.")
    tokens_of = _tokenizer(vocabulary, options.max_words)

    def prepare(example):
        kept = {name: example[name] for name in keep}
        tokens = tokens_of(example)
        return {**kept, **of_example(example, inputs), "tokens": tokens}

    prepared = examples.map(prepare, tf.data.AUTOTUNE)
    window = SHUFFLE_BUFFER
    if options.cache:
        prepared, window = prepared.cache(), CACHED_SHUFFLE_BUFFER

    def batches_of_epoch(epoch):
        def choose(example):
            captions = example["tokens"]
            chosen = epoch + tf.range(options.captions_per_image, dtype=tf.int64)
            chosen = chosen % tf.shape(captions, tf.int64)[0]
            tokens = tf.gather(captions, chosen)
            return {**example, "tokens": tokens, "references": captions[:, 1:]}

        # Of this graph alone: the order depends on no seed set elsewhere.
        tf.random.set_seed(options.seed + 1)
        order = prepared.shuffle(window, seed=epoch)
        return _training_batches(
            order.map(choose, tf.data.AUTOTUNE),
            batch_size,
            options.few_shapes and options.max_words,
            drop_remainder=True,
        )

    return endless(batches_of_epoch, first_epoch)


def endless(
    batches_of_epoch: Callable[[Any], tf.data.Dataset], first_epoch: int
) -> tf.data.Dataset:
    """The batches of one epoch after the other.

    Args:
        batches_of_epoch: Function of the number of an epoch, int64 scalar.
        first_epoch: int, number of the epoch to begin with.
    """
    epochs = tf.data.Dataset.counter(first_epoch)
    batches = epochs.flat_map(batches_of_epoch).prefetch(tf.data.AUTOTUNE)
    # Several workers share each batch, not the files that it comes from.
    shared = tf.data.Options()
    shared.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return batches.with_options(shared)


def distributed(strategy: Any, part_of_batches: Callable[[int, int], Any]) -> Any:
    """Batches for `fit` under a distribution strategy, of which each replica has parts.

    The parts of a batch may differ in their shapes: padding is that of each part.

    Args:
        strategy: `tf.distribute.Strategy`, or `None` for one device.
        part_of_batches: Function of the number of a part, from 0, and of the number of
            parts, to an endless tf.data dataset of this part of every batch.
    """
    count = strategy.num_replicas_in_sync if strategy else 1
    if count == 1:
        return part_of_batches(0, 1)

    def of_worker(context):
        own = count // context.num_input_pipelines
        first = context.input_pipeline_id * own
        parts = [part_of_batches(first + i, count) for i in range(own)]
        # Its replicas take turns.
        return tf.data.Dataset.choose_from_datasets(
            parts, tf.data.Dataset.range(own).repeat()
        )

    return strategy.distribute_datasets_from_function(of_worker)


@tf.autograph.experimental.do_not_convert  # it fails for pydantic
def grouped(batches: tf.data.Dataset, size: int) -> tf.data.Dataset:
    """Groups of batches, for `keras_caption.training.AccumulatingTrainer`.

    Args:
        batches: tf.data dataset of batches, of any shapes.
        size: int, number of batches of a group. An incomplete last group is dropped.

    Returns:
        tf.data dataset of tuples of batches.
    """
    check(Count, size=size)

    def group(*parts):
        window = tf.data.Dataset.zip(parts)
        return tuple(window.skip(i).take(1).get_single_element() for i in range(size))

    windows = batches.window(size, drop_remainder=True)
    return windows.map(group, tf.data.AUTOTUNE)


def reference_tokens(
    examples: tf.data.Dataset, vocabulary: Tokenizer, max_words: int = 16
) -> np.ndarray:
    """All captions of every image, as self-critical rewards count them.

    Args:
        examples: Finite tf.data dataset of examples.
        vocabulary: `keras_caption.text.Tokenizer` of the captions.
        max_words: int, at which longer captions are cut, a number of tokens.

    Returns:
        int32 `(images, R, T)`: tokens and EOS, then PAD.
    """
    tokens_of = _tokenizer(vocabulary, max_words)
    tokens = examples.map(lambda example: tokens_of(example)[:, 1:])
    return next(iter(tokens.padded_batch(len(examples)))).numpy()


def reference_batches(
    examples: tf.data.Dataset,
    vocabulary: Tokenizer,
    batch_size: int,
    max_words: int = 16,
    inputs: Any = None,
    few_shapes: bool = False,
) -> tf.data.Dataset:
    """Batches of images with all their captions, for the loss of a split.

    Args:
        examples: Finite tf.data dataset of examples.
        vocabulary: `keras_caption.text.Tokenizer` of the captions.
        batch_size: int, number of images; the last batch may have fewer.
        max_words: int, at which longer captions are cut, a number of tokens.
        inputs: Of `train_batches`.
        few_shapes: bool, see `BatchOptions`; an incomplete last batch is filled up by
            images whose captions are padding alone.

    Returns:
        tf.data dataset of inputs, targets and weights, as of `train_batches`. Images
        with fewer captions than others have some of padding alone.
    """
    tokens_of = _tokenizer(vocabulary, max_words)
    prepared = examples.map(
        lambda example: {**of_example(example, inputs), "tokens": tokens_of(example)},
        tf.data.AUTOTUNE,
    )
    batches = _training_batches(prepared, batch_size, few_shapes and max_words)
    return batches.prefetch(tf.data.AUTOTUNE)


def image_batches(
    examples: tf.data.Dataset, batch_size: int, inputs: Any = None
) -> tf.data.Dataset:
    """Batches of images for captioning, in the order of the examples.

    Args:
        examples: tf.data dataset of examples.
        batch_size: int, number of images; the last batch may have fewer.
        inputs: Of `train_batches`.

    Returns:
        tf.data dataset of dicts: `image_id` int64 `(B,)`, and the inputs as of
        `train_batches`.
    """

    def prepare(example):
        return {**of_example(example, inputs), "image_id": example["image_id"]}

    batches = examples.map(prepare, tf.data.AUTOTUNE).padded_batch(batch_size)
    return batches.map(in_float32, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def in_float32(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch with its tensors of half precision in float32."""
    halves = {k: tf.cast(x, tf.float32) for k, x in batch.items() if x.dtype == tf.half}
    return {**batch, **halves}


def _tokenizer(vocabulary, max_words):
    """Function from an example to the tokens of its captions, int32 `(R, T)`."""
    check(Count, max_words=max_words)

    def tokens_of(example):
        if isinstance(vocabulary, Vocabulary):
            tokens = vocabulary.look_up(tf.strings.split(example["words"]))
        else:
            tokens = vocabulary.tokenize(example["captions"])
        tokens = tokens[:, :max_words]
        ends = tf.fill((tokens.nrows(), 1), BOS), tf.fill((tokens.nrows(), 1), EOS)
        return tf.concat([ends[0], tokens, ends[1]], axis=1).to_tensor(PAD)

    return tokens_of


def _training_batches(examples, batch_size, longest, **options):
    """Batches of inputs, targets and weights.

    Args:
        examples: tf.data dataset of dicts with `tokens`, int32 `(C, T)`.
        batch_size: int, number of examples.
        longest: int, greatest number of tokens of a caption without BOS and EOS, to
            which all are padded, with other sizes rounded up; 0 for as little padding
            as a batch needs.
        **options: Of `tf.data.Dataset.padded_batch`.
    """

    def with_targets(batch):
        batch = in_float32(batch)
        if longest:
            captions = {"tokens": longest + 2, "references": longest + 1}
            shapes = {
                name: (batch_size, *values.shape[1:-1], captions[name])
                if name in captions
                else (batch_size, *values.shape[1:])
                for name, values in batch.items()
            }
            batch = padded_to_few_shapes(batch, **shapes)
        else:  # without positions that are padding in all rows
            used = tf.reduce_any(batch["tokens"] != PAD, axis=(0, 1))
            length = tf.reduce_sum(tf.cast(used, tf.int32))
            batch["tokens"] = batch["tokens"][:, :, :length]
        return teacher_forcing(batch)

    batches = examples.padded_batch(batch_size, **options)
    return batches.map(with_targets, tf.data.AUTOTUNE)
