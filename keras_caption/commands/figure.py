r"""Draws a figure of the papers from finished runs.

    keras-caption figure curves saved_models/san saved_models/san_nsa
    keras-caption figure position saved_models/gsan --output position.svg

    curves     validation scores by epoch (NG-SAN, Fig. 2)
    position   learned geometric weight over dx and dy (NG-SAN, Fig. 3)
    size       learned geometric weight over dw and dh (NG-SAN, Fig. 4)
    captions   captions of the same images by runs and by a person (NG-SAN, Fig. 5;
               AoANet, Table 3)
    attention  what words attend to (AoANet, Fig. 8; Spatial, Fig. 2)

A RUN is the folder of a finished run; `position` and `size` also take a saved model
with content-independent geometry. The suffix of FILE decides the format: .png, .svg or
.pdf.
"""

import argparse
import pathlib
from collections.abc import Sequence

from keras_caption.base.atomic import check_new, creating
from keras_caption.base.errors import InputError, need_packages
from keras_caption.commands.command_line import Parser, names, new_figure
from keras_caption.formats.model_files import model_file
from keras_caption.formats.runs import read_config

NAMES = ("curves", "position", "size", "captions", "attention")
OF_WEIGHTS = ("position", "size")  # figures of one saved model
OF_IMAGES = ("captions", "attention")  # figures of chosen images
DPI = 300  # of raster formats


def make_parser() -> Parser:
    parser = Parser("keras-caption figure", __doc__, imports=True, check=check)
    parser.add_argument("name", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--images",
        type=names,
        default=[],
        metavar="ID",
        help="for captions and attention: ids of images, separated by commas; if "
        "omitted, the images whose scores differ most between the first and last run",
    )
    parser.add_argument(
        "--output",
        type=new_figure,
        metavar="FILE",
        help="new file for the figure; defaults to NAME.png",
    )
    return parser


def check(options: argparse.Namespace) -> None:
    """Raises `InputError` for options that exclude each other, or what is missing."""
    if options.images and options.name not in OF_IMAGES:
        raise InputError(f"--images is for {' and '.join(OF_IMAGES)}.")
    options.output = options.output or f"{options.name}.png"
    check_new(options.output)
    need_packages("matplotlib")
    if options.name in OF_WEIGHTS:
        if len(options.runs) > 1:
            raise InputError(
                f"The figure {options.name} shows one run, not {len(options.runs)}."
            )
        if "://" not in options.runs[0]:
            model_file(options.runs[0])
        return
    for run in options.runs:
        read_config(pathlib.Path(run))


def main(arguments: Sequence[str]) -> None:
    options = make_parser().parse_intermixed_args(arguments)
    figure = draw(options.name, options.runs, options.images)
    with creating(options.output) as partial:
        figure.savefig(partial, dpi=DPI)
    print(f"Wrote {options.output}")


def draw(name, runs, images):
    """Draws the figure of a name."""
    from keras_caption import models
    from keras_caption.apps.report import figures, visualization
    from keras_caption.apps.report.run_report import FinishedRun, RunRecord

    if name in OF_WEIGHTS:
        return visualization.geometric_weight_figure(models.load(runs[0]), name)
    folders = [*map(pathlib.Path, runs)]
    if name == "curves":
        return figures.curves_figure([RunRecord.read(folder) for folder in folders])
    opened = [FinishedRun.open(folder) for folder in folders]
    if name == "captions":
        return figures.captions_figure(opened, images)
    return figures.attention_figure(opened, images)
