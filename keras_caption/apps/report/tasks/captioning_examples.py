"""Captions of a test split, with the attention of each word."""

import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from jaxtyping import Float
from keras import ops

import keras_caption as kc
from keras_caption.apps.report.results.examples import Attention, Example, Line, Outcome
from keras_caption.apps.report.visualization.attention import names_of
from keras_caption.formats.coco import read_captions
from keras_caption.formats.coco_results import read_results
from keras_caption.models.sentence_reader import pad
from keras_caption.tasks.captioning import Captioning
from keras_caption.text import EOS
from keras_caption.training.task import EXAMPLES_AT_ONCE


def outcome(task: Captioning, model: Any, folder: pathlib.Path) -> Outcome:
    """The captions of a run's test split, with a score for each image.

    Captions of characters without spaces are scored by characters.
    """
    captions = read_results(folder / "test_results.json")
    references = read_captions(folder / "test_references.json")
    texts = [
        text for captions_of_image in references.values() for text in captions_of_image
    ]
    by_characters = task.data["tokenizer"] == "characters"
    characters = by_characters and kc.evaluation.lacks_spaces(texts)
    scores = kc.evaluation.cider_by_image(captions, references, characters)
    names = kc.datasets.given_ids(task.builder)
    numbers = {name: number for number, name in names.items()}
    counts: dict[str, dict[str, int]] = {}
    if judged := task.statements:
        by_number = {
            numbers[i] if isinstance(i, str) else i: text
            for i, text in captions.items()
        }
        shares = judged.accuracy(by_number, task.read("test"))
        counts["statements"] = {name: count for name, (_, count) in shares.items()}
    return Outcome(
        [*captions.values()],
        [references[i] for i in captions],
        scores,
        "CIDEr-D",
        counts,
    )


def examples(
    task: Captioning,
    model: Any,
    folder: pathlib.Path,
    scores: dict[Any, float],
    keys: Sequence[Any],
) -> dict[Any, Example]:
    """The captions of some images of a run's test split.

    Args:
        task: `keras_caption.tasks.Captioning`.
        model: The run's captioner, or `None`: then examples have no attention.
        folder: `pathlib.Path` of the run.
        scores: dict from image id to float.
        keys: Sequence of image ids.
    """
    captions = read_results(folder / "test_results.json")
    references = read_captions(folder / "test_references.json")
    builder, names = task.builder, kc.datasets.given_ids(task.builder)
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
    for batch in kc.batches.image_batches(examples, EXAMPLES_AT_ONCE, names):
        numbers = batch.pop("image_id").numpy().tolist()
        inputs = model.read(batch)
        tokens = [model.vocabulary.to_ids(captions[number]) for number in numbers]
        words = [[model.vocabulary.words[t] for t in row] for row in tokens]
        ended = pad([[*row, EOS] for row in tokens])
        weights = [x[:-1] for [x] in model.attended(inputs, ended[:, None])]
        attended = attention_over_areas(model, kind, inputs, batch, weights)
        yield from zip(numbers, words, attended, strict=True)


def attention_over_areas(
    model: Any,
    kind: kc.inputs.InputKind,
    inputs: dict[str, Any],
    batch: dict[str, Any],
    weights: Sequence[Float[np.ndarray, "T M"]],
) -> Iterator[Attention | None]:
    """Attention to areas of each image of a batch, none of it to padding.

    Args:
        model: The model.
        kind: The kind of the input that has the areas.
        inputs: What the model has read of the batch.
        batch: dict of arrays. A model that ignores boxes has none in its inputs.
        weights: float `(T, M)` of each image.

    Yields:
        `Attention`, or `None` if the items have no place in the image.
    """
    areas, mask = kind.areas({**inputs, **batch}), kind.memory_mask(inputs)
    mask = None if mask is None else ops.convert_to_numpy(mask)
    for row, shares in enumerate(weights):
        if areas is None:
            yield None
            continue
        shares = shares if mask is None else shares * mask[row]
        image_inputs = {name: values[row : row + 1] for name, values in inputs.items()}
        yield Attention(areas[row], shares, names_of(model, image_inputs))
