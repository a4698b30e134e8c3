"""Options of commands that read photos: the model, and the detector of objects."""

import argparse
from collections.abc import Sequence
from typing import Any

import keras_caption as kc
from keras_caption.commands.command_line import names, share
from keras_caption.errors import need_packages
from keras_caption.formats import built_in

DETECTOR = "dfine_nano_coco"
CONFIDENCE = {
    "type": share,
    "help": "least score of an object; defaults to 0.3, or to 0.15 where the model "
    "reads the scores",
}


def add_model_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds `--model`; `default` is the name of a model that the package has."""
    parser.add_argument(
        "--model",
        type=names,
        default=[default],
        help="saved model, run, preset or export, or several separated by commas; "
        f"defaults to {default}, which the package has",
    )


def need_detector(models: Sequence[str], detector: str | None) -> None:
    """Raises `InputError` if a model that the package has lacks what it needs.

    That is known before Keras is imported, and any model loaded.

    Args:
        models: Sequence of str, names of models.
        detector: str, value of `--detector`, or `None`.
    """
    if not {*models} & {*built_in.models()}:
        return
    need_packages("PIL", *([] if is_file(detector) else ["keras_hub"]))


def is_file(detector):
    """Whether a detector is a network in a file, which needs no KerasHub."""
    return detector is not None and detector.endswith(".keras")


def add_detector_options(
    parser: argparse.ArgumentParser, default: str = f"defaults to {DETECTOR}"
) -> None:
    """Adds the options that `predictor_of` reads."""
    parser.add_argument(
        "--detector",
        help="finds the objects that a model of COCO's objects reads, such as the "
        "default one: a preset of KerasHub, name or folder, or a YOLOX network as a "
        f".keras file; {default}",
    )
    parser.add_argument("--confidence", **CONFIDENCE)


def predictor_of(model: Any, options: Any, instead: str = "") -> "kc.serving.Predictor":
    """What answers about photos, by the detector that the command line names.

    Args:
        model: An ensemble of `keras_caption.models`, loaded from `options.model`.
        options: Options of the command line: `model`, a list of names, and those of
            `add_detector_options`.
        instead: str, what else a user can do, the end of a sentence.

    Raises:
        InputError: If the model extracts features otherwise, or not at all, or there
            is no such detector.
    """
    if options.detector or model.extractor is None:
        from keras_caption.serving.detection import add_detector

        name, detector = ",".join(options.model), options.detector or DETECTOR
        add_detector(model, detector, options.confidence, name, instead)
    return kc.serving.Predictor(model)
