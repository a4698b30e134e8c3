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
