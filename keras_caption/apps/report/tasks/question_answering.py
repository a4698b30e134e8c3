"""Scores, answers and figures of a model on the test questions of a dataset."""

import collections
import pathlib
import random
from typing import Any

from matplotlib.figure import Figure

import keras_caption as kc
from keras_caption.apps.report.visualization.attention import LEGEND_HEIGHT, add_legend
from keras_caption.apps.report.visualization.fonts import without_font
from keras_caption.apps.report.visualization.questions import LEGEND
from keras_caption.formats.items import write_items
from keras_caption.tasks.question_answering import QuestionAnswering
from keras_caption.training.answer_validation import answer_questions

DRAWN = 4  # questions in the figure of attention
SHOWN = 10  # questions that are printed


def evaluate(
    task: QuestionAnswering, model: Any, folder: pathlib.Path
) -> dict[str, Any]:
    """Answers and scores the test questions, and prints the scores.

    Args:
        task: `keras_caption.tasks.QuestionAnswering`.
        model: A trained model, or an ensemble.
        folder: `pathlib.Path` for the answers and a figure.

    Returns:
        dict, see `keras_caption.evaluation.score_answers`.
    """
    data, questions = task.questions, task.read("test")
    answers = answer_questions(model, questions, task.encode(model, "test"))
    kc.evaluation.write_vqa_results(folder / "test_results.json", answers)
    scores = kc.evaluation.score_answers(answers, questions)
    accuracies = [
        kc.evaluation.answer_accuracy(answers[question.question_id], question.answers)
        for question in questions
    ]
    write_items(
        folder / "test_items.json",
        [question.question_id for question in questions],
        {"accuracy": accuracies},
    )
    unanswered = data.questions.get("unanswered")
    if unanswered:
        unscored = answer_questions(model, unanswered, task.encode(model, "unanswered"))
        kc.evaluation.write_vqa_results(folder / "server_results.json", unscored)
    if isinstance(model, kc.models.MCAN):
        with without_font():
            draw_attention(model, data, folder / "attention.png")

    print(f"\nTest split, {len(questions):,} questions, {model.name}\n")
    print(kc.evaluation.answer_tables(questions, scores))
    known = [question.main_answer for question in questions]
    note = kc.evaluation.note_on_outputs([*answers.values()], known, "answers")
    if note:
        print(f"\n{note}")
    print("\nSome questions, each followed by the model's answer and a person's:")
    for question in questions[:SHOWN]:
        answer = answers[question.question_id]
        print(f"  {question.text}\n      {answer} ({question.main_answer})")
    return scores


def draw_attention(
    model: kc.models.MCAN, data: kc.datasets.ImageQuestions, path: pathlib.Path
) -> None:
    """Draws the attention weights of questions about some test images."""
    texts = collections.defaultdict(list)
    tokenizer = model.question
    assert isinstance(tokenizer, kc.text.Vocabulary)  # the task's `QuestionTokenizer`
    for question in data.questions["test"]:
        if tokenizer.split(question.text):  # words to show
            texts[question.image_id].append(question.text)
    images = data.images("test", images=True).as_numpy_iterator()
    examples = (example for example in images if int(example["image_id"]) in texts)
    size = 20, 2.4 * DRAWN + LEGEND_HEIGHT
    figure = Figure(figsize=size, layout="constrained")
    add_legend(figure, LEGEND)
    parts = figure.subfigures(DRAWN, squeeze=False)[:, 0]
    rng = random.Random(0)
    for part, example in zip(parts, examples, strict=False):
        names = [name for name in model.input_specs if name in example]
        inputs = {name: example[name][None].astype("float32") for name in names}
        text, image = rng.choice(texts[int(example["image_id"])]), example.get("image")
        kc.visualization.attention_over_question(model, inputs, text, image, part)
    figure.savefig(path, dpi=80)
