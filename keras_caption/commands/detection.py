"""Options of commands that read photos: the model, and the detector of objects."""

import argparse
import importlib.util
from collections.abc import Sequence
from typing import Any

import keras_caption as kc
from keras_caption.apps.objects.yolox_download import YOLOX_NANO
from keras_caption.base.errors import need_packages
from keras_caption.commands.command_line import names, share
from keras_caption.features import efficientnet_lite
from keras_caption.formats import built_in
from keras_caption.formats.suffixes import suffix_of
from keras_caption.predict import RecordPredictor

DETECTOR = "dfine_nano_coco"
LITE_DETECTOR = YOLOX_NANO  # of LiteRT, which needs no TensorFlow
# What detectors in files need, by their suffixes; others need KerasHub.
NEEDED = {".keras": [], ".onnx": ["onnxruntime"], ".tflite": ["ai_edge_litert"]}
NEEDED[LITE_DETECTOR] = NEEDED[".onnx"]
LITE_HELP = f"defaults to {DETECTOR}, on LiteRT to {LITE_DETECTOR}, also downloaded"
CONFIDENCE: dict[str, Any] = {
    "type": share,
    "help": "least score of an object; defaults to 0.3, or to 0.15 if the model reads "
    "the scores",
}


def add_model_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds `--model`; `default` is the name of a model in the package."""
    parser.add_argument(
        "--model",
        type=names,
        default=[default],
        help="saved model, run, preset or export, or several separated by commas; "
        f"defaults to {default}, a model in the package",
    )


def need_detector(models: Sequence[str], detector: str | None) -> None:
    """Raises `InputError` if a model in the package needs a missing Python package.

    The check comes before Keras is imported and a model is loaded.

    Args:
        models: Sequence of str, names of models.
        detector: str, value of `--detector`, or `None`.
    """
    if not {*models} & {*built_in.models()}:
        return
    name = detector or ""
    need_packages("PIL", *NEEDED.get(suffix_of(name) or name, ["keras_hub"]))


def add_detector_options(
    parser: argparse.ArgumentParser, default: str = f"defaults to {DETECTOR}"
) -> None:
    """Adds the options that `predictor_of` reads."""
    parser.add_argument(
        "--detector",
        help="detector of the objects that a model of COCO's objects reads, such as "
        "the default model: a preset of KerasHub, name or folder; a YOLOX or "
        "NanoDet-Plus network as a .keras file; or one of these, DETR or RT-DETR as an "
        f".onnx or .tflite file; {default}",
    )
    parser.add_argument("--confidence", **CONFIDENCE)


def add_second_opinion(parser: argparse.ArgumentParser, default: bool = True) -> None:
    """Adds `--second_opinion`, of captioners of COCO's objects.

    Args:
        parser: The command line's.
        default: bool, whether it is on where its packages are installed.
    """
    packages = efficientnet_lite.PACKAGE, "keras_hub"
    by_default = "on where that is installed" if default else "off"
    parser.add_argument(
        "--second_opinion",
        action=argparse.BooleanOptionalAction,
        default=default and all(map(importlib.util.find_spec, packages)),
        help="classify each detected object once more, and correct its category; needs "
        f"the extra backbones; by default {by_default}",
    )


def add_details(parser: argparse.ArgumentParser) -> None:
    """Adds `--details`, the value of `RecordPredictor.details`."""
    parser.add_argument(
        "--details",
        action=argparse.BooleanOptionalAction,
        default=RecordPredictor.details,
        help="add to captions of objects what is measured in the photo: colours, a "
        "place, and names of a second opinion; and leave out what is not surely done",
    )


def predictor_of(model: Any, options: Any, instead: str = "") -> "kc.serving.Predictor":
    """Makes a predictor that reads photos by the detector of the command line.

    Args:
        model: An ensemble of `keras_caption.models`, loaded from `options.model`.
        options: Options of the command line: `model`, a list of names, and those of
            `add_detector_options`, and perhaps of `add_second_opinion`.
        instead: str, end of a message that says what else a user can do.

    Raises:
        InputError: If the model has another extractor or does not read objects, or
            there is no such detector.
    """
    if options.detector or model.extractor is None:
        from keras_caption.apps.serve.detection import add_detector

        name, detector = ",".join(options.model), options.detector or DETECTOR
        second = getattr(options, "second_opinion", False)
        add_detector(model, detector, options.confidence, name, instead, second)
    return kc.serving.Predictor(model)
