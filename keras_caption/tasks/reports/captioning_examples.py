"""Captions of a test split, with the attention of each word."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from jaxtyping import Float
from keras import ops

import keras_caption as kc
from keras_caption.formats.coco import read_captions
from keras_caption.formats.coco_results import read_results
from keras_caption.results.examples import Attention, Example, Line, Outcome
from keras_caption.text import BOS, PAD
from keras_caption.visualization.attention import names_of

BATCH_SIZE = 50


def outcome(folder: pathlib.Path, builder: Any, tokenizer: str) -> Outcome:
    """The captions of a run's test split, with a score for each image.

    Args:
        folder: `pathlib.Path` of the run.
        builder: TFDS builder.
        tokenizer: str, tokenizer of the run. Captions of characters without spaces are
            scored by characters.
    """
    captions = read_results(folder / "test_results.json")
    references = read_captions(folder / "test_references.json")
    texts = [
        text for captions_of_image in references.values() for text in captions_of_image
    ]
    characters = tokenizer == "characters" and kc.evaluation.lacks_spaces(texts)
    scores = kc.evaluation.cider_by_image(captions, references, characters)
    numbers = {name: number for number, name in kc.datasets.given_ids(builder).items()}
    counts: dict[str, dict[str, int]] = {}
    judged = kc.datasets.statements_of(builder)
    if judged:
        examples = kc.datasets.read(builder, "test")
        by_number = {
            numbers[i] if isinstance(i, str) else i: text
            for i, text in captions.items()
        }
        shares = judged.accuracy(by_number, examples)
        counts["statements"] = {name: count for name, (_, count) in shares.items()}
    return Outcome(
        [*captions.values()],
        [references[i] for i in captions],
        scores,
        "CIDEr-D",
        counts,
    )


def examples(
    model: Any,
    folder: pathlib.Path,
    builder: Any,
    scores: dict[Any, float],
    keys: Sequence[Any],
) -> dict[Any, Example]:
    """The captions of some images of a run's test split.

    Args:
        model: The run's captioner, or `None`: then examples have no attention.
        folder: `pathlib.Path` of the run.
        builder: TFDS builder.
        scores: dict from image id to float.
        keys: Sequence of image ids.
    """
    captions = read_results(folder / "test_results.json")
    references = read_captions(folder / "test_references.json")
    names = kc.datasets.given_ids(builder)
    numbers = {name: number for number, name in names.items()}
    chosen = np.array([numbers.get(key, key) for key in keys])
    shown = {
        key: Example([Line(captions[key].split(), score=scores[key])], references[key])
        for key in keys
    }
    read = kc.datasets.read(builder, "test", images=True)
    read = read.filter(lambda example: tf.reduce_any(example["image_id"] == chosen))
    if "image" in builder.info.features:
        for example in read.as_numpy_iterator():
            number = int(example["image_id"])
            shown[names.get(number, number)].image = example["image"]
    if model is None:
        return shown
    by_characters = isinstance(model.vocabulary, kc.text.CharacterTokenizer)
    by_number = {
        number: captions[names.get(number, number)] for number in chosen.tolist()
    }
    for number, words, attention in attention_of_captions(model, read, by_number):
        line = shown[names.get(number, number)].lines[0]
        line.words, line.attention = words, attention
        line.gap = "" if by_characters else " "
    return shown


def attention_of_captions(
    model: Any, examples: Any, captions: dict[int, str]
) -> Iterable[tuple[int, list[str], Attention | None]]:
    """Computes the attention of the words of known captions.

    Args:
        model: A captioner, or an ensemble.
        examples: tf.data dataset.
        captions: dict from image id to str.

    Yields:
        Image id, words of the caption, and `Attention`, or `None` if items of the
        memory have no place in the image.
    """
    kind = model.memory_kind
    names = {*model.input_specs, *kind.keys}
    for batch in kc.batches.image_batches(examples, BATCH_SIZE, names):
        numbers = batch.pop("image_id").numpy().tolist()
        inputs = model.read(batch)
        # The boxes of the batch: a model that ignores boxes has none in its inputs.
        areas = kind.areas({**inputs, **batch})
        tokens = [model.vocabulary.to_ids(captions[number]) for number in numbers]
        words = [[model.vocabulary.words[t] for t in row] for row in tokens]
        if areas is None:
            yield from ((n, x, None) for n, x in zip(numbers, words, strict=True))
            continue
        length = 1 + max(map(len, tokens))
        previous = [[BOS, *t] + [PAD] * (length - 1 - len(t)) for t in tokens]
        weights = model.attention(
            ops.convert_to_tensor(previous, dtype="int32"), model.encode(inputs)
        )
        weights = of_valid(ops.convert_to_numpy(weights), kind.memory_mask(inputs))
        for row, number in enumerate(numbers):
            attention = Attention(
                areas[row],
                weights[row, : len(tokens[row])],
                names_of_regions(model, inputs, row),
            )
            yield number, words[row], attention


def of_valid(
    weights: Float[np.ndarray, "batch T M"], mask: Any
) -> Float[np.ndarray, "batch T M"]:
    """Sets the weights of padding to zero.

    Args:
        weights: float `(batch, T, M)`.
        mask: bool `(batch, M)`, True for valid items, or `None` if all are valid.
    """
    return weights if mask is None else weights * ops.convert_to_numpy(mask)[:, None]


def names_of_regions(model: Any, inputs: dict[str, Any], row: int) -> list[str] | None:
    """Categories of the regions of one image, if regions are objects."""
    image_inputs = {name: values[row : row + 1] for name, values in inputs.items()}
    return names_of(model, image_inputs)
