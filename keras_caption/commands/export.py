r"""Exports a saved model for another program.

    keras-caption export runs/ngsan --output exports/ngsan
    keras-caption export saved_models/ngsan_coco.keras --detector yolox_nano \
        --output exports/ngsan_coco
    keras-caption export runs/multi30k --output engine --format ctranslate2 \
        --precision int8
    keras-caption export saved_models/ngsan_coco.keras --output captioner --format onnx
    keras-caption export ngsan_coco --detector yolox_nano --output captioner \
        --format litert --precision int8 --compare photos

writes a model of any task as a SavedModel for TensorFlow Serving, see
`keras_caption.serving.export`. Each export is the next version of the model, in a
folder of OUTPUT with the number of the version as its name. The formats `openvino`,
`onnx` and `litert` are for OpenVINO, ONNX Runtime and LiteRT. Their files read and
write tokens and hold the beam search; README.md in the folder shows how to run them and
how to read the tokens, see `keras_caption.serving.export_engine`. A folder for LiteRT
may hold the detector too: `keras-caption caption --model OUTPUT` then needs neither
TensorFlow nor another file. In int8, a file for LiteRT has less than a third of the
size, and some texts differ: how many of photos or sentences that --compare names is
printed. The format `ctranslate2` is for Transformers that
translate, see `keras_caption.serving.export_ctranslate2`.
"""

import functools
import pathlib
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.base.atomic import check_folder, check_new, exclusive_file
from keras_caption.base.progress import silent
from keras_caption.commands.command_line import Parser
from keras_caption.commands.detection import add_detector_options, add_second_opinion
from keras_caption.formats.exports import is_export, next_version
from keras_caption.formats.text_lines import lines
from keras_caption.predict import Fault

PRECISIONS = ("float32", "int8")


def make_parser() -> Parser:
    parser = Parser("keras-caption export", __doc__, imports=True)
    parser.add_argument("model", help="saved model, run, preset or export")
    parser.add_argument("--format", choices=[*FORMATS], default="saved_model")
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        required=True,
        help="folder of the model's versions; for other formats, a new folder",
    )
    add_detector_options(parser, "if omitted, no signature reads photos")
    add_second_opinion(parser)
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        help="ctranslate2 and litert: precision of matrices, defaults to float32",
    )
    parser.add_argument(
        "--compare",
        type=pathlib.Path,
        metavar="EXAMPLES",
        help="litert in int8: photos whose captions in both precisions are compared, "
        "or sentences for a translator, a file",
    )
    parser.add_argument(
        "--jit_compile",
        action="store_true",
        help="saved_model: compile searches by XLA, for a server with a GPU",
    )
    return parser


def main(arguments: Sequence[str]) -> None:
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.precision and options.format not in ("ctranslate2", "litert"):
        parser.error(f"--format {options.format} has no --precision")
    is_compared = options.format == "litert" and options.precision == "int8"
    if is_compared != (options.compare is not None):
        parser.error("--format litert --precision int8 needs --compare, no other does")
    if options.jit_compile and options.format != "saved_model":
        parser.error(f"--format {options.format} has no --jit_compile")
    if options.detector and options.format not in ("saved_model", "litert"):
        parser.error(f"--format {options.format} reads no photos: it has no --detector")
    check, write = FORMATS[options.format]
    check(options.output)
    model = kc.models.load(options.model)
    if options.detector:
        from keras_caption.apps.serve.detection import add_detector

        second = options.second_opinion and options.format == "litert"
        add_detector(
            *(model, options.detector, options.confidence, options.model),
            second_opinion=second,
        )
    records = None if options.compare is None else records_of(model, options.compare)
    print(f"Wrote {write(model, options)}")
    if records is not None:
        print(compared(model, options.output, records))


def records_of(model, path):
    """The records of photos in a folder, or of a file of sentences for a translator.

    Raises:
        InputError: If there are none, or the model reads neither.
    """
    if getattr(model, "source", None) is not None:
        return [{"source": line} for line in lines(path)]
    if not isinstance(model, kc.models.Captioner) or model.extractor is None:
        raise kc.InputError(
            f"--compare is for translators and captioners of photos, and "
            f"'{model.name}' reads no photos: name its --detector."
        )
    return [{"photo": x} for x in kc.features.find_photos(path)]


def compared(model, folder, records):
    """Says how many texts of a model are the same in a file for LiteRT.

    Records that cannot be read, or get no text, are not compared.
    """
    engine = kc.models.load(folder)
    engine.extractor = getattr(model, "extractor", None)
    texts = []
    for each in model, engine:
        predictor = kc.serving.Predictor(each)
        answers = predictor.stream(records, read=functools.partial(read, predictor))
        texts.append(["" if isinstance(x, Fault) else x.text for x in answers])
    pairs = [(ours, theirs) for ours, theirs in zip(*texts, strict=True) if ours]
    same = sum(ours == theirs for ours, theirs in pairs)
    share = f" ({same / len(pairs):.1%})" if pairs else ""
    return f"{same:,} of {len(pairs):,} texts are the same in int8{share}"


def read(predictor, record, place):
    if "photo" in record:
        record = {"photo": record["photo"].read_bytes()}
    return predictor.read(record, place)


def check_versions(folder):
    """Raises `InputError` unless a version can be written into a folder."""
    if is_export(folder):
        raise kc.InputError(
            f"{folder} is an export itself: name its parent folder, to which the next "
            "version is written."
        )
    check_folder(folder / "1")


def saved_model(model, options):
    with exclusive_file(options.output):
        path = next_version(options.output)
        kc.serving.export(model, path, jit_compile=options.jit_compile)
    return path


def ctranslate2(model, options):
    precision = options.precision or PRECISIONS[0]
    kc.serving.export_ctranslate2(model, options.output, precision)
    return options.output


def engine(model, options):
    with silent():  # converters print what they do
        precision = options.precision or PRECISIONS[0]
        kc.serving.export_engine(model, options.output, options.format, precision)
    return options.output


FORMATS = {
    "saved_model": (check_versions, saved_model),
    "openvino": (check_new, engine),
    "onnx": (check_new, engine),
    "litert": (check_new, engine),
    "ctranslate2": (check_new, ctranslate2),
}
