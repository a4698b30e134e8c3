r"""Chooses the probability below which a model declines to answer, and its cost.

    python experiments/declining.py saved_models/photos_0 --accuracy 0.5 \
        --save saved_models/mcan_photos.keras

The threshold is the least one above which at least the share --accuracy of answers to
validation questions is right. Prints the accuracy over answered test questions, for
this threshold and for several shares of answered questions. Writes the model with its
threshold and without its detector, which `keras-caption answer` takes as --detector.
"""

import pathlib

import numpy as np

import keras_caption as kc
from experiments.papers.finished import task_of
from keras_caption.commands.command_line import Parser, new_file, share, start
from keras_caption.evaluation.vqa import answer_accuracy
from keras_caption.formats.runs import read_config
from keras_caption.tasks import QuestionAnswering

BATCH_SIZE = 128
SHARES = (0.25, 0.5, 0.75, 1.0)


def main(arguments):
    parser = Parser("experiments/declining.py", __doc__, imports=True)
    parser.add_argument("run", help="folder of a finished run")
    parser.add_argument(
        "--accuracy", type=share, default=0.5, help="least accuracy of given answers"
    )
    parser.add_argument("--save", type=new_file, help="new file for the model")
    options = parser.parse_intermixed_args(arguments)
    run = read_config(pathlib.Path(options.run))
    if task_of(run) is not QuestionAnswering:
        raise kc.InputError(f"{options.run} holds no model that answers questions.")
    task = QuestionAnswering(run["config"])
    model = kc.models.load(options.run)
    model.threshold = threshold_for(*outcomes(task, model, "val"), options.accuracy)
    certain, right = outcomes(task, model, "test")
    print(f"\n{len(right):,} test questions, threshold {model.threshold:.4f}\n")
    rows = kept_and_right(certain, right, model.threshold)
    print(kc.evaluation.markdown_table(["probability", "answered", "accuracy"], rows))
    if options.save:
        if isinstance(model.extractor, kc.features.ObjectDetector):
            model.extractor = None
        model.save(options.save)
        print(f"\nWrote {options.save}")


def outcomes(task, model, split):
    """Probability and accuracy of each answer to the questions of a split."""
    questions, certain, right = task.read(split), [], []
    for inputs, numbers in task.encode(model, split).batches(BATCH_SIZE):
        best = model.answer_n_best(inputs, None, 1, BATCH_SIZE)
        for [(answer, probability)], number in zip(best, numbers.numpy(), strict=True):
            certain.append(probability)
            right.append(answer_accuracy(answer, questions[number].answers))
    return np.array(certain), np.array(right)


def threshold_for(certain, right, accuracy):
    """The least probability above which outputs have an accuracy, on average.

    Args:
        certain: float `(outputs,)`, probabilities of answers or captions.
        right: float `(outputs,)`, accuracy of each output.
        accuracy: float.

    Raises:
        InputError: If no threshold leads to that accuracy.
    """
    order = np.argsort(-certain, kind="stable")
    means = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(means >= accuracy)
    if not len(enough):
        raise kc.InputError(
            f"No part of the validation split reaches {accuracy:.0%}; the best has "
            f"{means.max():.0%}."
        )
    return float(certain[order[enough[-1]]])


def kept_and_right(certain, right, threshold):
    """Rows of a table: the share of outputs that are kept, and their accuracy, in %.

    Args:
        certain, right: As in `threshold_for`.
        threshold: float, threshold of the first row. Other rows keep the outputs of
            greatest probability.
    """
    least = [(f"at least {threshold:.2f}", threshold)]
    least += [(f"the surest {s:.0%}", np.quantile(certain, 1 - s)) for s in SHARES]
    return [
        (name, *(f"{100 * x:.1f}" for x in (np.mean(kept), right[kept].mean())))
        for name, kept in ((name, certain >= bound) for name, bound in least)
        if kept.any()
    ]


if __name__ == "__main__":
    start(main)
