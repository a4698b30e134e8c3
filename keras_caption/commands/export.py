r"""Exports a saved model for another program.

    keras-caption export runs/multi30k --output engine --format ctranslate2 \
        --precision int8

writes a Transformer that translates for CTranslate2, see
`keras_caption.serving.export_ctranslate2`; `saved_model`, a model of any task for
TensorFlow Serving, see `keras_caption.serving.export`.
"""

from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import Parser, new_file

PRECISIONS = ("float32", "int8")


def make_parser() -> Parser:
    parser = Parser("keras-caption export", __doc__, imports=True)
    parser.add_argument("model", help="saved model, run, preset or export")
    parser.add_argument("--format", choices=[*FORMATS], required=True)
    parser.add_argument("--output", type=new_file, required=True, help="new folder")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        help="ctranslate2: of the weights of matrices, float32 if not given",
    )
    return parser


def main(arguments: Sequence[str]) -> None:
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.precision and options.format != "ctranslate2":
        parser.error(f"--format {options.format} has no --precision")
    FORMATS[options.format](kc.models.load(options.model), options)
    print(f"Wrote {options.output}")


def saved_model(model, options):
    kc.serving.export(model, options.output)


def ctranslate2(model, options):
    precision = options.precision or PRECISIONS[0]
    kc.serving.export_ctranslate2(model, options.output, precision)


FORMATS = {"saved_model": saved_model, "ctranslate2": ctranslate2}
