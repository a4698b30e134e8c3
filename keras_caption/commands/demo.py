r"""Shows a page for trying models in a browser.

    keras-caption demo
    keras-caption demo saved_models/ngsan_coco.keras saved_models/mcan_photos.keras
    keras-caption demo runs/ngsan runs/aoanet runs/multi30k --port 8000

The page has a tab for each task of the models: captions of photos, captions of clips,
questions about photos, translations. It shows the best texts, the detected objects and
what each word attends to, also for two models side by side. If no model is named,
ngsan_coco and mcan_photos are shown. Models that are separated by commas form an
ensemble.

The page is for this machine only, unless --host is another address, such as 0.0.0.0:
anybody who can reach that address may then use the models. The page needs no network.
"""

import argparse
import os
import pathlib
from collections.abc import Sequence

from keras_caption.base.arguments import Port
from keras_caption.base.errors import missing_extras, need_packages
from keras_caption.commands.command_line import (
    Parser,
    add_jit_compile,
    names,
    number,
)
from keras_caption.commands.detection import (
    add_details,
    add_detector_options,
    add_second_opinion,
    need_detector,
    predictor_of,
)

MODELS = [["ngsan_coco"], ["mcan_photos"]]


def make_parser() -> Parser:
    parser = Parser("keras-caption demo", __doc__, imports=True, check=check)
    parser.add_argument("models", nargs="*", type=names, help="saved models or presets")
    add_detector_options(parser)
    add_second_opinion(parser)
    add_details(parser)
    parser.add_argument("--host", default="127.0.0.1", help="defaults to 127.0.0.1")
    parser.add_argument(
        "--port",
        type=number(Port),
        help="defaults to the first free port from 7860 on",
    )
    add_jit_compile(parser)
    return parser


def check(options: argparse.Namespace) -> None:
    """Raises `InputError` if a package is missing."""
    need_packages("gradio")
    options.models = options.models or MODELS
    for members in options.models:
        need_detector(members, options.detector)


def main(arguments: Sequence[str]) -> None:
    options = make_parser().parse_args(arguments)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # Gradio reads it when imported
    with missing_extras():
        from keras_caption.apps.serve.demo import build_page, launch
        from keras_caption.apps.serve.predictor import Predictor
        from keras_caption.models import load_ensemble
    predictors = {}
    for members in options.models:
        model = load_ensemble(members)
        if model.extractor is None and model.categories:
            options.model = members  # the names of the model in messages
            predictor = predictor_of(model, options)
        else:
            predictor = Predictor(model)
        predictor.details = options.details
        name = ",".join(pathlib.Path(member).stem for member in members)
        predictors[",".join(members) if name in predictors else name] = predictor
    launch(build_page(predictors), options.host, options.port)
