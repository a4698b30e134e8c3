"""Captioning datasets of NumPy arrays in memory."""

import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from pydantic import Field

from keras_caption.base.arguments import check
from keras_caption.base.errors import InputError, need_name
from keras_caption.batches.examples import caption_features, captions_and_words
from keras_caption.batches.pipeline import image_batches
from keras_caption.formats.faults import reason_of
from keras_caption.formats.fields import TextWithWords
from keras_caption.inputs import find_faults, kinds_of

# Shapes of an item. Named dimensions are the same for all items; `None` may differ.
SHAPES = {
    "regions": (None, "region_dim"),
    "boxes": (None, 4),
    "grid": ("height", "width", "grid_dim"),
    "frames": (None, "frame_dim"),
    "times": (None,),
}
# Features that have a row for each row of another one.
ROWS_OF = {"boxes": "regions", "times": "frames"}
CHECKED_AT_ONCE = 64  # items

Captions = Annotated[Sequence[TextWithWords], Field(min_length=1)]
Split = Literal["train", "val", "test"]


class ArrayDataset:
    """Examples in memory, with the interface of a TFDS builder.

    Attributes:
        info: Object with `features` and `splits`, like that of a TFDS builder.
        data_path: str, location of the examples in messages.

    Args:
        features: `tfds.features.FeaturesDict`.
        examples: dict from split to a list of examples, dicts by name.
    """

    data_path = "memory"

    def __init__(
        self,
        features: tfds.features.FeaturesDict,
        examples: dict[str, list[dict[str, Any]]],
    ):
        self.examples = examples
        splits = {}
        for split, items in examples.items():
            values = [value for example in items for value in example.values()]
            num_bytes = sum(
                value.nbytes for value in values if hasattr(value, "nbytes")
            )
            splits[split] = tfds.core.SplitInfo(
                name=split, shard_lengths=[len(items)], num_bytes=num_bytes
            )
        self.info = types.SimpleNamespace(features=features, splits=splits)

    def download_and_prepare(self) -> None:
        """Does nothing; `keras_caption.datasets.load` calls it for every dataset."""

    def as_dataset(self, split: str, **_: Any) -> tf.data.Dataset:
        """Makes a tf.data dataset of a split, see `keras_caption.datasets.read`."""
        parts = tfds.core.ReadInstruction.from_spec(split).to_absolute(self.info.splits)
        examples = [
            example
            for part in parts
            for example in self.examples[part.splitname][part.from_ : part.to]
        ]
        specs = self.info.features.get_tensor_spec()

        def generate():
            for example in examples:
                yield {
                    name: np.asarray(example[name], spec.dtype.as_numpy_dtype)
                    for name, spec in specs.items()
                }

        dataset = tf.data.Dataset.from_generator(generate, output_signature=specs)
        return dataset.apply(tf.data.experimental.assert_cardinality(len(examples)))


def from_arrays(
    features: Mapping[str, Any],
    captions: Sequence[Sequence[str]],
    splits: Sequence[str] | None = None,
) -> ArrayDataset:
    """Makes a captioning dataset of arrays in memory.

    Args:
        features: dict from a name to an array `(items, ...)`, or to a list of an array
            for each item. The names, and the shapes for an item, are `regions`
            `(N, region_dim)`, and for models that read them `boxes` `(N, 4)`, x1, y1,
            x2, y2 divided by the image's width and height; `grid`
            `(height, width, grid_dim)`; `frames` `(T, frame_dim)`, and optionally
            their `times` `(T,)`, in seconds. N and T may differ among items. Arrays
            are not copied.
        captions: Sequence of a list of str for each item.
        splits: Sequence of `"train"`, `"val"` or `"test"` for each item. If omitted,
            all items are for training.

    Returns:
        `ArrayDataset`, for `keras_caption.datasets.read`, `build_vocabulary` and
        `register`. The id of an item is its number.

    Raises:
        InputError: If a name is unknown, a shape is wrong or differs among items, the
            numbers of items differ, a value is not finite, boxes are not valid, or an
            item has no caption.

    Example:

    ```python
    data = kc.datasets.from_arrays({"regions": regions, "boxes": boxes}, captions)
    vocabulary = kc.datasets.build_vocabulary(data)
    batches = kc.batches.train_batches(kc.datasets.read(data, "train"), vocabulary, 32)
    ```
    """
    check_names(features)
    for name, values in {**features, "captions": captions}.items():
        if isinstance(values, Mapping) or not hasattr(values, "__len__"):
            raise InputError(f"`{name}` must be a list, received {values!r:.60}.")
    if not len(captions):
        raise InputError("`captions` are of no item.")
    splits = ["train"] * len(captions) if splits is None else splits
    for name, values in {**features, "splits": splits}.items():
        if len(values) != len(captions):
            raise InputError(
                f"`{name}` are of {len(values):,} items, and `captions` of "
                f"{len(captions):,}."
            )
    columns = {name: arrays_of(name, values) for name, values in features.items()}
    examples: dict[str, list[dict[str, Any]]] = {"train": [], "val": [], "test": []}
    for item, (texts, split) in enumerate(zip(captions, splits, strict=True)):
        check(Captions, **{f"captions[{item}]": texts})
        check(Split, **{f"splits[{item}]": split})
        example: dict[str, Any] = {n: arrays[item] for n, arrays in columns.items()}
        check_rows(example, item)
        example |= {"image_id": item, **captions_and_words(list(texts))}
        examples[split].append(example)
    dataset = ArrayDataset(features_of(columns), examples)
    for split, items in examples.items():
        if items:
            check_values(dataset.as_dataset(split))
    return dataset


def check_names(features: Mapping[str, Any]) -> None:
    """Checks the names of features; raises `InputError` if one is wrong or missing."""
    for name in features:
        need_name(name, SHAPES, f"There are no features {name!r}")
        if ROWS_OF.get(name, name) not in features:
            raise InputError(f"`{name}` need `{ROWS_OF[name]}` beside them.")
    if not features:
        raise InputError(f"There are no features. Valid names are {', '.join(SHAPES)}.")


def arrays_of(name: str, values: Any) -> list[np.ndarray]:
    """Converts the items of a feature to arrays.

    Raises:
        InputError: If an item does not hold finite numbers, or its shape is wrong.
    """
    arrays, expected = [], SHAPES[name]
    for item, value in enumerate(values):
        where = f"`{name}` of item {item}"
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise InputError(f"{where}: {reason_of(error)}.") from None
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise InputError(f"{where} should be finite numbers.")
        # The first item decides the named dimensions.
        if not item and array.ndim == len(expected):
            expected = tuple(
                size if isinstance(known, str) else known
                for known, size in zip(expected, array.shape, strict=True)
            )
        if array.ndim != len(expected) or any(
            known not in (size, None)
            for known, size in zip(expected, array.shape, strict=True)
        ):
            raise InputError(
                f"{where} should have the shape {expected}. Received: {array.shape}"
            )
        arrays.append(array)
    return arrays


def check_rows(example: dict[str, Any], item: int) -> None:
    """Checks that an item has as many boxes as regions, and times as frames."""
    for name, first in ROWS_OF.items():
        if name in example and len(example[name]) != len(example[first]):
            raise InputError(
                f"Item {item} has {len(example[first])} {first} and "
                f"{len(example[name])} {name}."
            )


def check_values(examples: tf.data.Dataset) -> None:
    """Checks that models can read every example.

    Raises:
        InputError: If boxes are not valid, or there is no region or frame.
    """
    for inputs in image_batches(examples, CHECKED_AT_ONCE):
        items = inputs.pop("image_id").numpy()
        for problem, wrong in find_faults(kinds_of(inputs), inputs).items():
            if wrong.numpy().any():
                raise InputError(f"Item {items[wrong.numpy()][0]} {problem}.")


def features_of(columns: dict[str, list[np.ndarray]]) -> tfds.features.FeaturesDict:
    """Makes the TFDS features of the examples."""
    features = {}
    for name, arrays in columns.items():
        pairs = zip(SHAPES[name], arrays[0].shape, strict=True)
        shape = tuple(None if known is None else size for known, size in pairs)
        features[name] = tfds.features.Tensor(shape=shape, dtype=np.float32)
    return caption_features(features)
