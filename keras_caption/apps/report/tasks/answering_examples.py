"""Answers to test questions, with the regions that attend to each of their words."""

import collections
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

import keras_caption as kc
from keras_caption.apps.report.results.examples import Attention, Example, Line, Outcome
from keras_caption.apps.report.tasks.captioning_examples import (
    names_of_regions,
    of_valid,
)
from keras_caption.training.answer_validation import QUESTIONS_AT_ONCE


def outcome(folder: pathlib.Path, data: kc.datasets.ImageQuestions) -> Outcome:
    """The answers of a run to the test questions, with a score for each image.

    Args:
        folder: `pathlib.Path` of the run.
        data: `keras_caption.datasets.ImageQuestions`.
    """
    answers = kc.evaluation.read_vqa_results(folder / "test_results.json")
    questions = answered(data, answers)
    scores_by_image = collections.defaultdict(list)
    for q in questions:
        scores_by_image[q.image_id].append(score_of(q, answers))
    return Outcome(
        [answers[q.question_id] for q in questions],
        [[q.main_answer] for q in questions],
        {image: float(np.mean(x)) for image, x in scores_by_image.items()},
        "accuracy",
        {
            "kinds": collections.Counter(q.kind for q in questions),
            "answer_types": collections.Counter(q.answer_type for q in questions),
        },
    )


def answered(data, answers):
    """The test questions that have an answer."""
    return [q for q in data.questions["test"] if q.question_id in answers]


def score_of(question, answers):
    """Accuracy of the answer to a question."""
    answer = answers[question.question_id]
    return kc.evaluation.answer_accuracy(answer, question.answers)


def examples(
    model: Any,
    folder: pathlib.Path,
    data: kc.datasets.ImageQuestions,
    encode: Callable[[Any, list], kc.batches.EncodedQuestions],
    keys: Sequence[int],
) -> dict[int, Example]:
    """The answers to the questions about some test images.

    Args:
        model: The run's model, or `None`: then examples have no attention.
        folder: `pathlib.Path` of the run.
        data: `keras_caption.datasets.ImageQuestions`.
        encode: Function of the model and questions that returns encoded questions.
        keys: Sequence of image ids.
    """
    answers = kc.evaluation.read_vqa_results(folder / "test_results.json")
    questions = [q for q in answered(data, answers) if q.image_id in {*keys}]
    shown = {key: Example([]) for key in keys}
    lines = []
    for q in questions:
        answer, score = answers[q.question_id], score_of(q, answers)
        line = Line(q.text.split(), answer, q.main_answer, q.kind, score)
        shown[q.image_id].lines.append(line)
        lines.append(line)
    if "image" in data.builder.info.features:
        chosen = np.array(keys)
        images = data.images("test", images=True)
        images = images.filter(lambda x: tf.reduce_any(x["image_id"] == chosen))
        for example in images.as_numpy_iterator():
            shown[int(example["image_id"])].image = example["image"]
    if isinstance(model, kc.models.MCAN):
        add_attention(model, questions, lines, encode(model, questions))
    return shown


def add_attention(model, questions, lines, encoded):
    """Adds to lines the share of each region's attention that each word gets."""
    [kind] = (kind for kind in model.kinds if isinstance(kind, kc.inputs.Regions))
    for batch, numbers in encoded.batches(QUESTIONS_AT_ONCE):
        inputs = model.read(batch)
        weights = ops.convert_to_numpy(model.attention(inputs)).swapaxes(1, 2)
        weights = of_valid(weights, kind.memory_mask(inputs))
        # The boxes of the batch: a model that ignores boxes has none in its inputs.
        areas = kind.areas({**inputs, **batch})
        for row, number in enumerate(numbers.numpy()):
            words = model.question.split(questions[number].text)
            words = words[: weights.shape[1]]
            if words:
                lines[number].words = words
                lines[number].attention = Attention(
                    areas[row],
                    weights[row, : len(words)],
                    names_of_regions(model, inputs, row),
                )
