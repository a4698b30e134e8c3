r"""Writes the report of a finished run, or of two runs compared, as one HTML file.

    keras-caption report saved_models/ngsan_scenes
    keras-caption report saved_models/san_scenes saved_models/ngsan_scenes

The file shows the configuration, curves, scores beside those of the papers, and
examples of the test split with what each word attends to. A browser opens it without a
network. Two runs must have the same test split. `keras-caption run` writes the report
of its run.
"""

import argparse
import pathlib
from collections.abc import Sequence

from keras_caption.base.atomic import creating
from keras_caption.base.errors import InputError, need_packages
from keras_caption.commands.command_line import Parser, new_file
from keras_caption.formats.runs import read_finished

COMPARED = "comparison.html"


def make_parser() -> Parser:
    parser = Parser("keras-caption report", __doc__, imports=True, check=check)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--output",
        type=new_file,
        metavar="FILE",
        help="new file for the report; if omitted, report.html in the run's folder or, "
        f"for two runs, {COMPARED} in the first run's folder; these are replaced",
    )
    return parser


def check(options: argparse.Namespace) -> None:
    """Raises `InputError` unless the folders hold one or two finished runs."""
    if len(options.runs) > 2:
        raise InputError("At most two runs can be compared.")
    need_packages("jinja2", "matplotlib")
    for run in options.runs:
        if not pathlib.Path(run, "test_scores.json").exists():
            raise InputError(f"{run} holds no finished run.")
        read_finished(pathlib.Path(run))


def main(arguments: Sequence[str]) -> None:
    options = make_parser().parse_intermixed_args(arguments)
    from keras_caption.apps.report.run_report import FILE, FinishedRun, write_report

    folders = [pathlib.Path(run) for run in options.runs]
    runs = [FinishedRun.open(folder) for folder in folders]
    path = folders[0] / (FILE if len(runs) == 1 else COMPARED)
    if options.output:
        with creating(options.output) as partial:
            write_report(runs, partial)
    else:
        write_report(runs, path)
    print(f"Wrote {options.output or path}")
