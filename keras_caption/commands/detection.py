"""Options of commands that read photos: the model, and the detector of objects."""

import argparse
import pathlib
from typing import Any

import keras_caption as kc
from keras_caption.commands import built_in
from keras_caption.commands.command_line import names, share

DETECTOR = "dfine_nano_coco"
CONFIDENCE = {
    "type": share,
    "help": "least score of an object; defaults to 0.3, or to 0.15 where the model "
    "reads the scores",
}


def add_model_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds `--model`; `default` is the name of a file, see `default_model`."""
    parser.add_argument(
        "--model",
        type=names,
        help="saved model, run, preset or export, or several separated by commas; "
        f"defaults to {pathlib.Path(default).stem}",
    )


def default_model(name: str) -> list[str]:
    """Value of `--model` where it is omitted: a model that the package has."""
    return [str(built_in.FOLDER / name)]


def add_detector_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `add_detector` reads."""
    parser.add_argument(
        "--detector",
        help="finds the objects that a model of COCO's objects reads, such as the "
        "default one: a preset of KerasHub, name or folder, or a YOLOX network as a "
        f".keras file; defaults to {DETECTOR}",
    )
    parser.add_argument("--confidence", **CONFIDENCE)


def add_detector(model: Any, options: Any, instead: str = "") -> None:
    """Gives a model of objects the detector that it reads photos by.

    Args:
        model: An ensemble of `keras_caption.models`, loaded from `options.model`.
        options: Options of the command line: `model`, a list of names, and those of
            `add_detector_options`.
        instead: str, what else a user can do, the end of a sentence.

    Raises:
        InputError: If the model extracts features otherwise, or not at all, or there
            is no such detector.
    """
    reads = tuple(model.categories or ())
    coloured = reads == kc.features.ColouredObjects.dimensions
    if model.extractor is None and (coloured or reads == kc.features.CATEGORIES):
        model.extractor = kc.features.load_detector(
            options.detector or DETECTOR, options.confidence, coloured
        )
    elif model.extractor is None:
        raise kc.InputError(
            f"{','.join(options.model)} has no extractor: it was not trained on photos "
            f"or clips{instead}."
        )
    elif options.detector:
        raise kc.InputError(
            f"{','.join(options.model)} extracts features of photos by itself: it "
            "takes no --detector."
        )
