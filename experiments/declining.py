r"""Chooses the probabilities below which answers are unsure, and what this costs.

    python experiments/declining.py saved_models/mcan_photos.keras \
        --detector yolox_nano.keras --photos images --questions questions \
        --accuracy 0.6 --save declining.keras

`questions` has the files of VQA and COCO-QA. The threshold of a kind of answers (yes or
no, numbers, others) is the least one above which at least the share --accuracy of such
answers to validation questions is right, or 1 if there is none. An answer of yes or no
is right if most people give it, and those where people say yes count as much as those
where they say no: a model that always says yes is right in half. Prints thresholds and
scores of the test questions, of the model alone and of commands and servers, which
compare answers with the detections. A number is right in words as in digits. Writes the
model with its thresholds. Without --accuracy, it keeps those that it has.
"""

import collections
import dataclasses

import numpy as np

import keras_caption as kc
from keras_caption.base.progress import progress
from keras_caption.commands.answer import extract
from keras_caption.commands.command_line import Parser, new_file, share, start
from keras_caption.datasets.questions import QUESTIONS
from keras_caption.evaluation.vqa import answer_accuracy
from keras_caption.formats.fields import image_id_of
from keras_caption.text.answers import (
    KINDS,
    kind_of_answer,
    normalize_answer,
    threshold_of,
)


def main(arguments):
    parser = Parser("experiments/declining.py", __doc__, imports=True)
    parser.add_argument("model", help="saved model, or the folder of a run")
    parser.add_argument(
        "--detector", required=True, help="as of `keras-caption answer`"
    )
    parser.add_argument("--photos", required=True, help="folder of photos")
    parser.add_argument("--questions", required=True, help="folder of the questions")
    parser.add_argument("--accuracy", type=share, help="least accuracy of sure answers")
    parser.add_argument("--save", type=new_file, help="new file for the model")
    options = parser.parse_args(arguments)
    model = kc.models.load(options.model)
    if not isinstance(model, kc.models.Classifier):
        raise kc.InputError(f"{options.model} is no model that answers questions.")
    predictor = kc.serving.Predictor(model, options.detector)
    questions = {
        split: [with_digits(question) for question in asked]
        for split, asked in QUESTIONS["vqa_coco_qa"](
            options.questions, None, {}
        ).items()
    }
    photos = {
        image_id_of(path.stem): path for path in kc.features.find_photos(options.photos)
    }
    if options.accuracy is not None:
        asked = questions["val"]
        answered = alone(predictor, read(predictor, asked, photos))
        model.threshold = thresholds_for(outcomes(asked, answered), options.accuracy)
    asked = questions["test"]
    examples = read(predictor, asked, photos)
    print(f"\n{len(asked):,} test questions")
    print_scores(model, asked, alone(predictor, examples), "the model alone")
    print_scores(model, asked, predictor.answer(examples), "with the detections")
    if options.save:
        model.extractor = None
        model.save(options.save)
        print(f"\nWrote {options.save}")


def with_digits(question):
    """A question whose only answer is normalized, so that a number has digits."""
    if len(question.answers) > 1:  # of ten annotators, normalized by the metric
        return question
    answers = tuple(map(normalize_answer, question.answers))
    return dataclasses.replace(question, answers=answers)


def read(predictor, questions, photos):
    """Examples of questions, of which those about a photo share its features."""
    features = {}
    for image_id in progress({q.image_id: None for q in questions}, unit="photos"):
        if image_id not in photos:
            raise kc.InputError(f"There is no photo of image {image_id}.")
        features[image_id] = extract(predictor.model, photos[image_id])
    examples = []
    for place, question in enumerate(questions):
        [tokens] = predictor.model.question_tokens([question.text])
        values = {**features[question.image_id], "question": tokens}
        examples.append(kc.predict.Example(place, values, question=question.text))
    return examples


def alone(predictor, examples):
    """Predictions that are not compared with the detections."""
    return predictor.answer([dataclasses.replace(x, question="") for x in examples])


def accuracy_of(prediction, question):
    """The accuracy of an answer, see `keras_caption.evaluation.answer_accuracy`."""
    return answer_accuracy(normalize_answer(prediction.text), question.answers)


def outcomes(questions, predictions):
    """Kind, probability and accuracy of each answer, and people's main answer.

    Photos without detections have no answer, and are skipped.
    """
    answered = []
    for question, x in zip(questions, predictions, strict=True):
        if x.text:
            kind, known = kind_of_answer(x.text), question.main_answer
            # Some people say yes where most say no: a yes to all is not right in half.
            is_exact = kind == "yes/no"
            right = x.text == known if is_exact else accuracy_of(x, question)
            answered.append((kind, x.confidence, float(right), known))
    return answered


def thresholds_for(answered, accuracy):
    """The threshold of each kind of answers, see `threshold_for`.

    Args:
        answered: As `outcomes` returns it.
        accuracy: float.

    Returns:
        dict from kind to float.
    """
    thresholds = {}
    for kind in KINDS:
        of_kind = [row[1:] for row in answered if row[0] == kind]
        counts = collections.Counter(known for *_, known in of_kind)
        # A weight makes both answers as frequent as their mean is.
        mean = (counts["yes"] + counts["no"]) / 2
        weight = {x: mean / counts[x] for x in ("yes", "no") if counts[x]}
        weight = weight if kind == "yes/no" else {}
        rows = [(p, right, weight.get(known, 1.0)) for p, right, known in of_kind]
        thresholds[kind] = threshold_for(*np.reshape(rows, (-1, 3)).T, accuracy)
    return thresholds


def threshold_for(certain, right, weights, accuracy):
    """The least probability above which answers have an accuracy, on average.

    Args:
        certain: float `(answers,)`, probabilities.
        right: float `(answers,)`, accuracy of each answer.
        weights: float `(answers,)`, weights of the mean.
        accuracy: float.

    Returns:
        float; 1 if no threshold leads to that accuracy.
    """
    order = np.argsort(-certain, kind="stable")
    means = np.cumsum((right * weights)[order]) / np.cumsum(weights[order])
    enough = np.flatnonzero(means >= accuracy)
    return float(certain[order[enough[-1]]]) if len(enough) else 1.0


def print_scores(model, questions, predictions, title):
    """Prints how many answers of each kind are sure, and the scores of all."""
    print(f"\n{title}\n")
    rows = []
    for kinds in [*((kind,) for kind in KINDS), KINDS]:
        of_kinds = [
            (not x.unsure, accuracy_of(x, question))
            for question, x in zip(questions, predictions, strict=True)
            if x.text and kind_of_answer(x.text) in kinds
        ]
        right = [accuracy for is_sure, accuracy in of_kinds if is_sure]
        name, threshold = "all", ""
        if len(kinds) == 1:
            [name] = kinds
            threshold = f"{threshold_of(model.threshold, name):.4f}"
        rows.append((name, threshold, len(of_kinds), len(right), percent(right)))
    header = ["kind of answer", "threshold", "answers", "sure", "right of these"]
    print(kc.evaluation.markdown_table(header, rows))
    texts = [normalize_answer(x.text) for x in predictions]
    ids = [question.question_id for question in questions]
    answers = dict(zip(ids, texts, strict=True))
    scores = kc.evaluation.score_answers(answers, questions)
    rows = [("all", scores["accuracy"]), *scores["answer_types"].items()]
    rows += scores["yes_no"].items()
    rows = [(name, percent([score])) for name, score in rows]
    print(f"\n{kc.evaluation.markdown_table(['', '%'], rows)}")


def percent(values):
    return f"{100 * np.mean(values):.1f}" if values else ""


if __name__ == "__main__":
    start(main)
