"""Answers to questions, judged by their kind and by detected objects."""

from collections.abc import Mapping
from typing import Any

from keras_caption.apps.objects.object_answers import (
    SURE,
    count_of,
    is_contradicted,
    is_number,
    presence_of,
)
from keras_caption.predict.prediction import Prediction
from keras_caption.text.answers import Kind, kind_of_answer, threshold_of


def is_unsure(
    answer: str, probability: float, threshold: float | Mapping[Kind, float]
) -> bool:
    """Whether an answer is less probable than the threshold of its kind.

    Args:
        answer: str.
        probability: float in [0, 1].
        threshold: As the attribute of `keras_caption.models.Classifier`.
    """
    return probability < threshold_of(threshold, kind_of_answer(answer))


def judge_answer(prediction: Prediction, question: str, model: Any) -> None:
    """Replaces or doubts an answer by what is detected.

    Objects of COCO's categories are counted, and are there or not, by the detections:
    such an answer replaces that of the model. A number is sure if the model gives the
    same number. Other answers that suppose an undetected object are unsure.

    Args:
        prediction: `Prediction` of an answer, with its objects. It is changed.
        question: str.
        model: The model that answered, with the attributes `recall` and `calibration`
            of a `keras_caption.models.Classifier`.
    """
    objects = prediction.objects
    if counted := count_of(question, objects):
        number, score = counted
        prediction.unsure = not is_number(prediction.text, number)
        if prediction.unsure:
            prediction.doubt = f"counted; the model says {prediction.text}"
            others = [x for x in prediction.best if not is_number(x[0], number)]
            replace(prediction, [(str(number), score), *others])
    elif there := presence_of(question, objects, model.recall, model.calibration):
        answer, share = there
        opposite = "no" if answer == "yes" else "yes"
        others = [x for x in prediction.best if x[0] not in (answer, opposite)]
        replace(prediction, [there, (opposite, 1 - share), *others])
        prediction.unsure = share < SURE
        if prediction.unsure:
            prediction.doubt = "what is detected is not enough"
    elif is_contradicted(question, prediction.text, objects):
        prediction.unsure, prediction.doubt = True, "nothing of the kind is detected"


def replace(prediction: Prediction, best: list[tuple[str, float]]) -> None:
    """Replaces the answers of a prediction by as many, the best first."""
    prediction.best = best[: len(prediction.best)]
    prediction.text, prediction.score = best[0]
    prediction.confidence = prediction.score
