from collections.abc import Sequence
from typing import Any

import keras

from keras_caption.base.progress import progress
from keras_caption.formats.question import Question
from keras_caption.formats.runs import SCALE
from keras_caption.training.callbacks import OutputNote

QUESTIONS_AT_ONCE = 128


class AnswerValidation(keras.callbacks.Callback):
    """Answers the validation questions after every epoch, and scores the answers.

    Adds their accuracy, times 100, to the epoch's logs as `val_accuracy`.

    Args:
        questions: Sequence of `keras_caption.datasets.Question` with known answers.
        encoded: `keras_caption.batches.EncodedQuestions` of these questions.
    """

    def __init__(self, questions: Sequence[Question], encoded: Any):
        super().__init__()
        self.questions = questions
        self.encoded = encoded
        self.note = OutputNote()

    def on_epoch_end(self, epoch, logs=None):
        from keras_caption.evaluation import score_answers

        answers = answer_questions(self.model, self.questions, self.encoded)
        accuracy = score_answers(answers, self.questions)["accuracy"]
        logs["val_accuracy"] = SCALE * accuracy
        known = [question.main_answer for question in self.questions]
        self.note([*answers.values()], known, "validation answers")


def answer_questions(
    model: Any, questions: Sequence[Question], encoded: Any
) -> dict[int, str]:
    """Answers questions by the most probable answer.

    Args:
        model: `keras_caption.models.Classifier`, or an ensemble of them.
        questions: Sequence of `keras_caption.datasets.Question`.
        encoded: `keras_caption.batches.EncodedQuestions` of these questions.

    Returns:
        dict from question id to answer, in the order of the questions.
    """
    answer_of: dict[int, str] = {}
    batches = encoded.batches(QUESTIONS_AT_ONCE)
    total = -(-len(questions) // QUESTIONS_AT_ONCE)
    for inputs, numbers in progress(
        batches, "Answering", total, "batches", leave=False
    ):
        answers = model.answer(inputs, batch_size=QUESTIONS_AT_ONCE)
        answer_of |= dict(zip(numbers.numpy().tolist(), answers, strict=True))
    # Batches come in the order of images, the answers in that of the questions.
    return {q.question_id: answer_of[number] for number, q in enumerate(questions)}
