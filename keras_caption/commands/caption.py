r"""Captions photos or clips with a trained model.

    keras-caption caption photo.jpg
    keras-caption caption holidays/ '*.jpg' --output captions.csv --output sheet.html
    keras-caption caption photo.jpg --n_best 5
    keras-caption caption photo.jpg --model saved_models/spatial_prepared \
        --figure attention.png
    keras-caption caption clip.mp4 --model saved_models/video_nsa_prepared
    keras-caption caption photo.jpg --engine keras

The default model, ngsan_coco, captions the objects that --detector finds. The default
detector is downloaded once: yolox_nano on LiteRT, or dfine_nano_coco of KerasHub; a
YOLOX network as a .keras file is another. Another model needs an extractor, which
models have that were trained on photos or clips prepared by `keras-caption prepare`, or
objects as regions, as models trained on coco_objects. The folder of a run stands for
the best.keras in it. Models that are separated by commas form an ensemble.

LiteRT, if it is installed, runs the default model with a detector that needs no
conversion, and without options that it lacks: those of decoding, --n_best, --figure and
--import. Keras and TensorFlow, which take seconds to start, are not needed then. With
--engine litert, LiteRT runs any model; models and detectors that are not in its format
are converted once, by TensorFlow, and kept. The same objects have the same captions.

With the extra backbones, each detected object is classified once more, which mends the
categories of animals; --no-second_opinion turns it off.

With --output, each caption is written at once: to a .csv, .jsonl or .parquet file, or
to a contact sheet in .html. The same command resumes after an interruption. Photos
without detected objects have no caption. "(unsure)", or the column `unsure`, marks
captions whose confidence is below the threshold of the model, and captions with a
plural for an object that is detected once. Files that cannot be read, clips that were
cut, and clips of one frame are skipped and counted; if there are many, FILE.skipped.csv
beside the first output lists them.

With --n_best, prints a line for each caption, the best first: the file, the
log-probability and the caption, between tabs. A .csv has columns for each caption, a
.jsonl or .parquet file a list; a text file beside a photo has the best caption.
"""

import collections
import contextlib
import functools
import glob
import importlib.util
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import keras_caption as kc
from keras_caption.apps.serve.lite_predictors import load_lite
from keras_caption.base.atomic import creating, exclusive_file
from keras_caption.base.errors import NoTextError, need_packages
from keras_caption.base.progress import progress, report
from keras_caption.commands.command_line import (
    Parser,
    add_decoding,
    add_jit_compile,
    continuing,
    decoding_of,
    import_library,
    new_figure,
    option,
    with_confidence,
)
from keras_caption.commands.detection import (
    LITE_DETECTOR,
    LITE_HELP,
    add_details,
    add_detector_options,
    add_model_option,
    add_second_opinion,
    need_detector,
    predictor_of,
)
from keras_caption.commands.engines import add_engine_option, engine_for, files_for
from keras_caption.commands.skipped import Skipped
from keras_caption.export.engine_cache import needs_no_tensorflow
from keras_caption.formats import built_in
from keras_caption.formats.folders import describe_passed_over
from keras_caption.formats.model_files import reads_clips
from keras_caption.formats.photo_metadata import is_described
from keras_caption.predict import BATCH_SIZE

MODEL = "ngsan_coco"
FORMULA = ("=", "+", "-", "@")  # how a cell begins that spreadsheets compute
MAX_PIXELS = 2**16 - 1  # of a side of a figure of Matplotlib


def make_parser() -> Parser:
    parser = Parser(
        "keras-caption caption",
        __doc__,
        imports=True,
        check=check,
        needs_library=False,  # until there is something to caption
    )
    parser.add_argument(
        "files",
        nargs="+",
        help="photos, folders of them, or patterns; clips for a model of videos",
    )
    add_model_option(parser, MODEL)
    add_engine_option(parser)
    add_detector_options(parser, LITE_HELP)
    add_second_opinion(parser)
    add_details(parser)
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="FILE",
        help="file for the captions: .csv, .jsonl, .parquet or .html; may be given "
        "several times",
    )
    parser.add_argument(
        "--sidecar",
        action="store_true",
        help="write the caption of dog.jpg to dog.txt beside it, or to dog.jpg.txt if "
        "there are other photos called dog, and pass over photos that have such a file",
    )
    parser.add_argument(
        "--write_metadata",
        choices=("file", "sidecar"),
        help="write the caption into the metadata of the photo, as XMP and IPTC, or to "
        "dog.jpg.xmp beside dog.jpg, as for photos that would lose something; a photo "
        "that has a description keeps it",
    )
    parser.add_argument(
        "--read_metadata",
        action="store_true",
        help="pass over photos that have a description in their metadata",
    )
    parser.add_argument(
        "--figure",
        type=new_figure,
        help="new file for a figure of the attention weights, which needs the extra "
        "visualization",
    )
    parser.add_argument(
        "--n_best",
        type=functools.partial(option, "beam_size"),
        metavar="N",
        help="give N captions of each file",
    )
    add_decoding(parser)
    add_jit_compile(parser)
    return parser


def check(options: Any) -> None:
    """Raises `InputError` if no file exists, or the package for metadata is missing."""
    files = options.files
    if not any(os.path.exists(name) or glob.has_magic(name) for name in files):
        raise kc.InputError(f"There is no file {files[0]}.")
    if options.write_metadata or options.read_metadata:
        need_packages("pyexiv2")


def main(arguments: Sequence[str]) -> int:
    options = make_parser().parse_intermixed_args(arguments)
    with contextlib.ExitStack() as stack:
        if options.output or options.sidecar or options.write_metadata:
            stack.enter_context(continuing())
        # A file that is named twice is written once.
        paths = {os.path.realpath(path): path for path in options.output}.values()
        for path in paths:
            stack.enter_context(exclusive_file(path))
        n = options.n_best or 1
        files = [kc.results.open_caption_file(path, n) for path in paths]
        for file in files:
            stack.enter_context(contextlib.closing(file))
        return caption(options, files)


def caption(options, outputs):
    """Captions all files; returns the exit status."""
    if options.engine is None and suits_litert(options):
        options.engine = "litert"
    engine = engine_for(options.model, options)
    predictor = None
    clips = reads_clips(options.model)
    if clips is None:
        predictor = captioner_of(options, engine)
        clips = isinstance(predictor.extractor, kc.features.ClipExtractor)
    skipped = Skipped.beside(outputs[0].path if outputs else None)
    passed_over = collections.Counter()
    files, missing = find_files(options.files, clips, passed_over)
    if not files:
        raise kc.InputError(missing[0])
    if passed_over:
        report(f"passed over: {describe_passed_over(passed_over)}")
    for error in missing:
        report(f"error: {error}")
    if options.sidecar:
        outputs = [*outputs, kc.results.Sidecars(files)]
    if options.write_metadata:
        metadata = kc.results.PhotoMetadata(options.write_metadata == "sidecar")
        outputs = [*outputs, metadata]
    left = [
        name
        for name in files
        if not (outputs and all(name in output for output in outputs))
        and not (options.read_metadata and is_described(name))
    ]
    if left:
        predictor = predictor or captioner_of(options, engine)
        predictor.check_options(options.n_best, decoding_of(options))
    side = max((x.side for x in outputs if x.side is not None), default=None)
    captions = Captions(predictor, options, skipped, side)
    empty = unwritten = 0
    for row, image in with_progress(captions(left), len(left), bool(outputs)):
        if row is None:
            continue
        empty += not row["caption"]
        unwritten += not write(row, image, outputs, skipped)
        if not outputs:
            print(*lines_of(row, predictor.categories), sep="\n", flush=True)
    if captions.drawn:
        figure = kc.visualization.attention_over_captions(
            predictor.model, captions.drawn
        )
        dpi = min(80, MAX_PIXELS / max(figure.get_size_inches()))
        with creating(options.figure) as partial:
            figure.savefig(partial, dpi=dpi)
        print(f"Wrote {options.figure}")
    elif options.figure:
        report(f"{options.figure} is not written: there is no caption to show")
    skipped.close()
    if options.write_metadata:
        metadata.report()
    if outputs:
        failed, before = len(skipped.records) - unwritten, len(files) - len(left)
        captioned = len(files) - failed - unwritten - empty
        without = f", {unwritten:,} cannot be written" if unwritten else ""
        without += f", in {empty:,} nothing is detected" if empty else ""
        print(
            f"Captioned {captioned:,} of {len(files):,} files"
            f"{f', {before:,} of them before' if before else ''}; {failed:,} "
            f"{'are skipped' if captions.without_text else 'cannot be read'}{without}: "
            f"{', '.join(str(output.path) for output in outputs)}"
        )
    return 1 if skipped.records or missing else 0


def suits_litert(options: Any) -> bool:
    """Whether LiteRT, if it is installed, runs what the command line asks for.

    The model is then in the package for LiteRT, and its detector needs no TensorFlow.
    """
    [model, *others], detector = options.model, options.detector
    file = built_in.models().get(model)
    return (
        not others
        and file is not None
        and (file.resolve(), "litert") in built_in.engines()
        and (detector is None or needs_no_tensorflow(detector))
        and not (decoding_of(options) or options.figure)
        and not (getattr(options, "import") or options.jit_compile)
        and (options.n_best or 1) == 1
        and all(map(importlib.util.find_spec, ("ai_edge_litert", "PIL")))
    )


def write(
    row: dict[str, Any], image: np.ndarray | None, outputs: Sequence, skipped: Skipped
) -> bool:
    """Writes a row to all outputs; returns whether each of them has taken it.

    What is wrong with a file beside one photo is no reason to end.

    Args:
        row: A row, see `CaptionFile`.
        image: The photo, or `None`.
        outputs: Sequence of writers.
        skipped: `Skipped`, which gets a row that was not written.
    """
    errors = []
    for output in outputs:
        try:
            output.write(row, image)
        except kc.InputError as error:
            errors.append(str(error).rstrip("."))
    if errors:
        name, reason = row["photo"], "; ".join(errors)
        skipped.add(name, f"the caption of {name} is not written: {reason}.")
    return not errors


def captioner_of(options: Any, engine: str) -> Any:
    """The captioner of files: a `Predictor`, or a captioner of `load_lite`.

    Args:
        options: Options of the command line.
        engine: str, what `engine_for` returned.
    """
    models, name = files_for(options.model, engine), ",".join(options.model)
    lite = None
    if engine == "litert":
        need_packages("PIL")
        lite = load_lite(
            models[0],  # engines run one model
            options.detector,
            LITE_DETECTOR,
            options.confidence,
            options.second_opinion,
        )
    if lite is None:
        need_detector(options.model, options.detector)
        import_library(options)
    model = lite or kc.models.load_ensemble(models, kc.models.Ensemble)
    if model.source is not None:
        raise kc.InputError(
            f"{name} translates sentences: use keras-caption translate."
        )
    predictor = lite or predictor_of(model, options)
    predictor.details = options.details
    return predictor


def lines_of(row: dict[str, Any], categories: Sequence[str] | None) -> list[str]:
    """The printed lines of a file: one, or one for each of its `n_best` captions.

    Args:
        row: A row, see `CaptionFile`.
        categories: Names of the categories of objects, if the model reads objects.
    """
    photo = kc.results.to_text(row["photo"])
    if captions := row.get("n_best"):
        return [f"{photo}\t{x['score']:.4f}\t{x['caption']}" for x in captions]
    sure = row["confidence"], row["unsure"], row["doubt"]
    text = with_confidence(row["caption"], *sure)
    if not row["caption"]:
        text = "nothing detected that it knows" if categories else "no words"
    return [f"{photo}: {text}"]


def find_files(
    names: Sequence[str], clips: bool, passed_over: collections.Counter
) -> tuple[list[str], list[str]]:
    """Lists named files and the files of folders and patterns, each once.

    Args:
        names: Sequence of str, files, folders and patterns.
        clips: bool, whether the model reads clips.
        passed_over: `collections.Counter` that counts other files of folders.

    Returns:
        The files, a list of str; and errors, a list of str, for folders and patterns
        without files.
    """
    find = kc.features.find_clips if clips else kc.features.find_photos
    files: list[str] = []
    errors = []
    for name in names:
        try:
            if pathlib.Path(name).is_dir():
                files += map(str, find(name, passed_over))
            elif pathlib.Path(name).exists() or not glob.has_magic(name):
                files.append(name)
            elif matches := sorted(
                filter(os.path.isfile, glob.glob(name, recursive=True))
            ):
                files += matches
            else:
                raise kc.InputError(f"No file is called {name}.")
        except kc.InputError as error:
            errors.append(str(error))
    once: dict[str, str] = {}
    for name in files:
        path = os.path.join(".", name) if name.startswith(FORMULA) else name
        once.setdefault(os.path.realpath(name), path)
    return list(once.values()), errors


class Captions:
    """Captions a stream of files, in memory of constant size.

    Args:
        predictor: What `captioner_of` returned, or `None` if there is nothing to do.
        options: Options of the command line.
        skipped: `Skipped` that collects files that cannot be read.
        side: int, longer side of the yielded images in pixels, or `None` for no images.

    Attributes:
        drawn: List of arguments of `attention_over_captions`, if a figure is requested.
        without_text: int, number of files whose captions the options exclude.
    """

    def __init__(
        self,
        predictor: Any,
        options: Any,
        skipped: Skipped,
        side: int | None,
    ):
        self.predictor = predictor
        self.search = decoding_of(options)
        self.n_best = options.n_best
        self.draws = bool(options.figure)
        self.side = side
        self.skipped = skipped
        self.without_text = 0
        # Inputs, tokens and image of each caption.
        self.drawn: list[tuple[dict[str, Any], Any, np.ndarray | None]] = []
        self._images: dict[int, np.ndarray] = {}  # by place, of files that were read

    def __call__(
        self, names: list[str]
    ) -> Iterator[tuple[dict, np.ndarray | None] | tuple[None, None]]:
        """Yields a row, see `CaptionFile`, and the image or `None`, for each file.

        A file that cannot be read has two `None`.
        """
        if not names:
            return
        predictions = self.predictor.stream(
            names,
            read=self._read,
            batch_size=1 if self.draws else BATCH_SIZE,  # a figure shows no padding
            n=self.n_best,
            **self.search,
        )
        pairs = zip(names, predictions, strict=True)
        for place, (name, prediction) in enumerate(pairs):
            image = self._images.pop(place, None)
            if isinstance(prediction, kc.predict.Fault):
                is_text = isinstance(prediction.error, NoTextError)
                self.without_text += is_text
                self.skipped.add(name, prediction.reason)
                yield None, None
                continue
            if self.draws and prediction.tokens is not None:
                inputs = {key: x[None] for key, x in prediction.inputs.items()}
                self.drawn.append((inputs, prediction.tokens, image))
            yield self._row(name, prediction), image

    def _read(self, name, place):
        file = self.predictor.extractor.read(name)
        medium = "clip" if isinstance(file, kc.features.Clip) else "photo"
        if self.draws:
            self._images[place] = image_of(file)
        elif self.side is not None:
            self._images[place] = kc.results.reduced(image_of(file), self.side)
        return self.predictor.example_of({medium: file}, place)

    def _row(self, name, prediction):
        texts = [kc.text.one_line(text) for text, _ in prediction.best]
        row = {
            "photo": name,
            "caption": texts[0] if texts else "",
            "score": round(prediction.score, 4),
            "confidence": round(prediction.confidence, 4),
            "unsure": prediction.unsure,
            "doubt": prediction.doubt,
            "objects": prediction.objects,
            "links": prediction.links,
        }
        if self.n_best is not None:
            row["n_best"] = [
                {"caption": text, "score": round(score, 4)}
                for text, (_, score) in zip(texts, prediction.best, strict=True)
            ]
        return row


def with_progress(rows: Iterable, total: int, shown: bool) -> Iterable:
    """Rows with a progress bar, unless the rows are printed."""
    return progress(rows, total=total, unit="files") if shown else rows


def image_of(item: Any) -> np.ndarray:
    """The image that shows attention: a photo, or the film strip of a clip."""
    is_clip = isinstance(item, kc.features.Clip)
    return kc.features.film_strip(item) if is_clip else item
