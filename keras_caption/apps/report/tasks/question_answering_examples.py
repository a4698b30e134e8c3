"""Answers to test questions, with the regions that attend to each of their words."""

import collections
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

import keras_caption as kc
from keras_caption.apps.report.results.examples import Example, Line, Outcome
from keras_caption.apps.report.tasks.captioning_examples import attention_over_areas
from keras_caption.tasks.question_answering import QuestionAnswering
from keras_caption.training.answer_validation import QUESTIONS_AT_ONCE


def outcome(task: QuestionAnswering, model: Any, folder: pathlib.Path) -> Outcome:
    """The answers of a run to the test questions, with a score for each image."""
    answers = kc.evaluation.read_vqa_results(folder / "test_results.json")
    questions = answered(task, answers)
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


def answered(task, answers):
    """The test questions that have an answer."""
    return [q for q in task.read("test") if q.question_id in answers]


def score_of(question, answers):
    """Accuracy of the answer to a question."""
    answer = answers[question.question_id]
    return kc.evaluation.answer_accuracy(answer, question.answers)


def examples(
    task: QuestionAnswering,
    model: Any,
    folder: pathlib.Path,
    scores: dict[int, float],
    keys: Sequence[int],
) -> dict[int, Example]:
    """The answers to the questions about some test images.

    Args:
        task: `keras_caption.tasks.QuestionAnswering`.
        model: The run's model, or `None`: then examples have no attention.
        folder: `pathlib.Path` of the run.
        scores: dict from image id to float; each line has a score of its own.
        keys: Sequence of image ids.
    """
    answers = kc.evaluation.read_vqa_results(folder / "test_results.json")
    questions = [q for q in answered(task, answers) if q.image_id in {*keys}]
    shown = {key: Example([]) for key in keys}
    lines = []
    for q in questions:
        answer, score = answers[q.question_id], score_of(q, answers)
        line = Line(q.text.split(), answer, q.main_answer, q.kind, score)
        shown[q.image_id].lines.append(line)
        lines.append(line)
    data = task.questions
    if "image" in data.builder.info.features:
        chosen = np.array(keys)
        images = data.images("test", images=True)
        images = images.filter(lambda x: tf.reduce_any(x["image_id"] == chosen))
        for example in images.as_numpy_iterator():
            shown[int(example["image_id"])].image = example["image"]
    if isinstance(model, kc.models.MCAN):
        encoded = task.encode(model, "test", questions)
        add_attention(model, questions, lines, encoded)
    return shown


def add_attention(model, questions, lines, encoded):
    """Adds to lines the share of each region's attention that each word gets."""
    [kind] = (kind for kind in model.kinds if isinstance(kind, kc.inputs.Regions))
    for batch, numbers in encoded.batches(QUESTIONS_AT_ONCE):
        inputs = model.read(batch)
        weights = ops.convert_to_numpy(model.attention(inputs)).swapaxes(1, 2)
        words = [model.question.split(questions[i].text) for i in numbers.numpy()]
        weights = [x[: len(own)] for x, own in zip(weights, words, strict=True)]
        attended = attention_over_areas(model, kind, inputs, batch, weights)
        for i, own, attention in zip(numbers.numpy(), words, attended, strict=True):
            if own:
                lines[i].words = own[: len(attention.weights)]
                lines[i].attention = attention
