"""Batches for captioners, made from prepared examples."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_caption.base.arguments import Count, CountOrZero, check
from keras_caption.base.errors import InputError, need_name
from keras_caption.batches.few_shapes import padded_to_few_shapes
from keras_caption.inputs import of_example
from keras_caption.text import BOS, EOS, PAD, Tokenizer, Vocabulary, teacher_forcing

# Numbers of examples in the shuffle buffer: in a cached dataset, which is in memory
# anyway, and in one that is read anew each epoch.
CACHED_SHUFFLE_BUFFER, SHUFFLE_BUFFER = 10_000, 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Options of `train_batches`.

    Attributes:
        captions_per_image: int, number of captions of every image. An image with more
            captions shows others each epoch; one with fewer repeats some.
        max_words: int, greatest number of tokens (words, subwords or characters) of a
            caption; longer captions are truncated.
        seed: int, seed of the order of the examples.
        cache: bool, whether to keep the examples in memory. If not, each epoch reads
            them anew, and shuffles them within a window of 1,000: datasets that
            `keras_caption.prepare.prepare_photos` writes are shuffled already.
        few_shapes: bool, whether to pad batches to few shapes, as XLA compiles a step
            for each: captions to `max_words`, and numbers of regions, frames and
            captions to sizes that `keras_caption.compilation.round_up` returns.

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
    """Makes endless training batches, in another order each epoch.

    The batches of an epoch depend on the options and the epoch's number alone, so that
    a run resumed at epoch k sees the same batches as an uninterrupted one. The
    incomplete last batch of an epoch is dropped. Batches serve both cross-entropy and
    self-critical training, which reads the inputs only.

    Args:
        examples: Finite tf.data dataset of examples, see
            `keras_caption.datasets.region_features`.
        vocabulary: `keras_caption.text.Tokenizer` of the captions.
        batch_size: int, number of images.
        options: `BatchOptions`. Defaults to those of the papers.
        inputs: Names of the model's inputs, such as its `input_specs`; other features
            of an image are dropped. Defaults to all inputs of `keras_caption.inputs`.
        first_epoch: int, number of the first epoch.
        keep: Names of further tensors of an example, such as those that a reward reads;
            batches hold them padded with zeros. Defaults to none.

    Returns:
        tf.data dataset of inputs, targets and weights, see
        `keras_caption.text.teacher_forcing`. The inputs are a dict of the model's
        inputs, see `keras_caption.inputs`; `tokens`, int32 `(B, C, T)`; and
        `references`, int32 `(B, R, T')`, all captions of the images, without BOS. Sizes
        are the largest of the batch.

    Raises:
        InputError: If an argument is of another kind, a number is out of range, or
            there are fewer examples than a batch has.

    Example:

    ```python
    options = kc.batches.BatchOptions(captions_per_image=2, seed=1)
    batches = kc.batches.train_batches(examples, vocabulary, 10, options)
    model.fit(batches, steps_per_epoch=100)
    ```
    """
    options = options or BatchOptions()
    check(BatchOptions, options=options)
    check(CountOrZero, first_epoch=first_epoch)
    check_examples(examples, batch_size, keep)
    count = int(examples.cardinality())  # negative if unknown
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
            # The captions of an image take turns: the window moves by one each epoch.
            chosen = epoch + tf.range(options.captions_per_image, dtype=tf.int64)
            chosen = chosen % tf.shape(captions, tf.int64)[0]
            tokens = tf.gather(captions, chosen)
            return {**example, "tokens": tokens, "references": captions[:, 1:]}

        # The global seed of this graph only, so that no seed set elsewhere changes the
        # order.
        tf.random.set_seed(options.seed + 1)
        order = prepared.shuffle(window, seed=epoch)
        return _training_batches(
            order.map(choose, tf.data.AUTOTUNE),
            batch_size,
            options.few_shapes and options.max_words,
            drop_remainder=True,
        )

    return endless(batches_of_epoch, first_epoch)


def check_examples(examples: Any, batch_size: int, names: Sequence[str] = ()) -> None:
    """Raises `InputError` unless there are examples to make batches of.

    Args:
        examples: Argument of a user.
        batch_size: int, number of examples of a batch.
        names: Names of the tensors that examples need.
    """
    check(Count, batch_size=batch_size)
    tensors = getattr(examples, "element_spec", None)
    if not isinstance(tensors, dict):
        raise InputError(
            "Examples must be a tf.data dataset of dicts, as that of "
            f"`keras_caption.datasets.read`. Received: {type(examples).__name__}"
        )
    for name in names:
        need_name(name, tensors, f"The examples have no {name!r}")


def endless(
    batches_of_epoch: Callable[[Any], tf.data.Dataset], first_epoch: int
) -> tf.data.Dataset:
    """Concatenates the batches of all epochs, without end.

    Args:
        batches_of_epoch: Function from the number of an epoch, int64 scalar, to a
            dataset.
        first_epoch: int, number of the first epoch.
    """
    epochs = tf.data.Dataset.counter(first_epoch)
    batches = epochs.flat_map(batches_of_epoch).prefetch(tf.data.AUTOTUNE)
    # Shard by batch, not by file: several workers share each batch.
    shared = tf.data.Options()
    shared.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return batches.with_options(shared)


def distributed(strategy: Any, part_of_batches: Callable[[int, int], Any]) -> Any:
    """Distributes batches to replicas, which each take a part of every batch.

    Parts of a batch may have different shapes: each part is padded by itself.

    Args:
        strategy: `tf.distribute.Strategy`, or `None` for one device.
        part_of_batches: Function from the index of a part and the number of parts to an
            endless tf.data dataset of this part of every batch.

    Returns:
        A dataset for `fit`.
    """
    count = strategy.num_replicas_in_sync if strategy else 1
    if count == 1:
        return part_of_batches(0, 1)

    def worker_batches(context):
        replicas = count // context.num_input_pipelines
        first = context.input_pipeline_id * replicas
        parts = [part_of_batches(first + i, count) for i in range(replicas)]
        # The strategy assigns consecutive elements to the replicas round-robin.
        return tf.data.Dataset.choose_from_datasets(
            parts, tf.data.Dataset.range(replicas).repeat()
        )

    return strategy.distribute_datasets_from_function(worker_batches)


@tf.autograph.experimental.do_not_convert  # it fails for pydantic
def grouped(batches: tf.data.Dataset, size: int) -> tf.data.Dataset:
    """Groups batches for `keras_caption.training.AccumulatingTrainer`.

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
    """Tokenizes all captions of every image, for self-critical rewards.

    Args:
        examples: Finite tf.data dataset of examples.
        vocabulary: `keras_caption.text.Tokenizer` of the captions.
        max_words: int, greatest number of tokens of a caption; longer ones are
            truncated.

    Returns:
        int32 `(images, R, T)`: tokens and EOS, then PAD.

    Raises:
        InputError: If an argument is of another kind.
    """
    check_examples(examples, 1)
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
    """Makes batches of images with all their captions, for the loss of a split.

    Args:
        examples: Finite tf.data dataset of examples.
        vocabulary: `keras_caption.text.Tokenizer` of the captions.
        batch_size: int, number of images; the last batch may have fewer.
        max_words: int, greatest number of tokens of a caption; longer ones are
            truncated.
        inputs: See `train_batches`.
        few_shapes: bool, see `BatchOptions`; an incomplete last batch is filled up with
            images whose captions are all padding.

    Returns:
        tf.data dataset of inputs, targets and weights, see `train_batches`. Images with
        fewer captions than others have captions that are all padding.

    Raises:
        InputError: If an argument is of another kind, or a number is out of range.
    """
    check_examples(examples, batch_size)
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
    """Makes batches of images to caption, in the order of the examples.

    Args:
        examples: tf.data dataset of examples.
        batch_size: int, number of images; the last batch may have fewer.
        inputs: See `train_batches`.

    Returns:
        tf.data dataset of dicts: `image_id` int64 `(B,)`, and the inputs as of
        `train_batches`.

    Raises:
        InputError: If an argument is of another kind, or a number is out of range.
    """
    check_examples(examples, batch_size, ["image_id"])

    def prepare(example):
        return {**of_example(example, inputs), "image_id": example["image_id"]}

    batches = examples.map(prepare, tf.data.AUTOTUNE).padded_batch(batch_size)
    return batches.map(in_float32, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def in_float32(batch: dict[str, Any]) -> dict[str, Any]:
    """Casts the half-precision tensors of a batch to float32."""
    halves = {k: tf.cast(x, tf.float32) for k, x in batch.items() if x.dtype == tf.half}
    return {**batch, **halves}


def _tokenizer(vocabulary, max_words):
    """Makes a function from an example to its captions' tokens, int32 `(R, T)`."""
    check(Count, max_words=max_words)
    if not isinstance(vocabulary, Tokenizer):
        raise InputError(
            "A vocabulary must be a `keras_caption.text.Tokenizer`. Received: "
            f"{type(vocabulary).__name__}"
        )

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
    """Makes batches of inputs, targets and weights.

    Args:
        examples: tf.data dataset of dicts with `tokens`, int32 `(C, T)`.
        batch_size: int, number of examples.
        longest: int, number of tokens, without BOS and EOS, to which all captions are
            padded, while other sizes are rounded up; or 0 for minimal padding.
        **options: Options of `tf.data.Dataset.padded_batch`.
    """

    def with_targets(batch):
        batch = in_float32(batch)
        if longest:
            captions = {"tokens": longest + 2, "references": longest + 1}  # no BOS
            shapes = {
                name: (batch_size, *values.shape[1:-1], captions[name])
                if name in captions
                else (batch_size, *values.shape[1:])
                for name, values in batch.items()
            }
            batch = padded_to_few_shapes(batch, **shapes)
        else:  # drop positions that are padding in all rows
            used = tf.reduce_any(batch["tokens"] != PAD, axis=(0, 1))
            length = tf.reduce_sum(tf.cast(used, tf.int32))
            batch["tokens"] = batch["tokens"][:, :, :length]
        return teacher_forcing(batch)

    batches = examples.padded_batch(batch_size, **options)
    return batches.map(with_targets, tf.data.AUTOTUNE)
