r"""Answers questions about images with a trained model.

    keras-caption answer photo.jpg "What colour is the dog?"
    keras-caption answer photo.jpg "What is it?" --model saved_models/mcan_mine
    keras-caption answer --questions questions.csv --output answers.txt
    keras-caption answer --questions questions.csv --regions features.tsv --model MODEL

The default model, mcan_photos, answers about the objects and colours that --detector
finds in photos; see `keras-caption caption` for detectors. Another model needs one of
these: an extractor, which models have that were trained on photos prepared by
`keras-caption prepare`; objects as regions; or --regions, which names features. The
folder of a run stands for the best.keras in it. Models that are separated by commas
form an ensemble.

A file of questions is a CSV with two columns, image and question; JSON: a list of
objects with image and question, VQA's or GQA's; or JSON Lines. An image is the path of
a photo or, with --regions, the id of an image in a folder that `keras-caption prepare`
wrote, or in a .tsv of features.

Prints one line for each question: the answer and its probability. "(unsure)" marks
answers whose probability is below the model's threshold for their kind, and answers
that the detected objects contradict. Objects of COCO's categories are counted, and are
there or not, by the detections. A photo without detected objects has no answer. With
--n_best, prints a line for each answer, the best first: the number of the question,
from 1, the probability and the answer, between tabs. If an image cannot be read, its
line is empty, and an error is reported.
"""

import argparse
import functools
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

import keras_caption as kc
from keras_caption.commands.command_line import (
    Parser,
    add_jit_compile,
    count,
    new_file,
    with_confidence,
    write_lines,
)
from keras_caption.commands.detection import (
    add_detector_options,
    add_model_option,
    need_detector,
    predictor_of,
)
from keras_caption.commands.engines import add_engine_option, engine_for, files_for
from keras_caption.commands.skipped import Skipped

MODEL = "mcan_photos"
IMAGES = 64  # images whose features are kept for further questions


def make_parser() -> Parser:
    parser = Parser("keras-caption answer", __doc__, imports=True, check=check)
    parser.add_argument("photo", nargs="?", help="file of a photo")
    parser.add_argument("question", nargs="*", help="questions about this photo")
    add_model_option(parser, MODEL)
    add_engine_option(parser)
    add_detector_options(parser)
    parser.add_argument("--questions", help="CSV or JSON of images and questions")
    parser.add_argument("--regions", help="prepared folder, or .tsv of features")
    parser.add_argument("--output", type=new_file, help="new file for the answers")
    parser.add_argument(
        "--n_best", type=count, metavar="N", help="print N answers to a question"
    )
    add_jit_compile(parser)
    return parser


def check(options: argparse.Namespace) -> None:
    """Raises `InputError` if the photo, or what answers need, is not there."""
    photo = options.photo
    if options.question and not options.regions and not os.path.exists(photo):
        raise kc.InputError(f"There is no file {photo}.")
    engine_for(options.model, options, ())
    if options.regions is None:
        need_detector(options.model, options.detector)


def main(arguments: Sequence[str]) -> int:
    parser = make_parser()
    options = parser.parse_intermixed_args(arguments)
    from keras_caption.formats.question_rows import read_question_rows

    if bool(options.question) == bool(options.questions) or (
        options.photo and options.questions
    ):
        parser.error("give a photo and questions about it, or --questions")
    if options.questions:
        rows = read_question_rows(options.questions)
    else:
        rows = [(options.photo, question) for question in options.question]
    if options.regions and options.detector:
        parser.error("--regions names features, which need no --detector")
    skipped = Skipped.beside(options.output)
    kind = kc.models.ClassifierEnsemble
    files = files_for(options.model, engine_for(options.model, options, ()))
    model = kc.models.load_ensemble(files, kind)
    if model.question is None:
        raise kc.InputError(f"{','.join(options.model)} reads no questions.")
    model.check_number_of_answers(options.n_best or 1)
    if options.regions is None:
        instead = "; --regions should name features of the images"
        predictor = predictor_of(model, options, instead)
    else:
        predictor = kc.serving.Predictor(model)
    read_image = image_reader(model, options.regions, {image for image, _ in rows})
    lines = answer_rows(predictor, read_image, rows, options.n_best, skipped)
    write_lines(lines, options.output)
    skipped.close()
    return 1 if skipped.records else 0


def image_reader(
    model: "kc.models.ClassifierEnsemble | kc.models.EngineModel",
    regions: str | None,
    images: set[str],
) -> Callable[[str], dict[str, np.ndarray]]:
    """Makes a function from an image of the rows to the model's inputs.

    Args:
        model: Model that reads the images.
        regions: Value of --regions.
        images: All images of the rows.
    """
    if regions is None:
        return functools.lru_cache(IMAGES)(lambda path: extract(model, path))
    if (pathlib.Path(regions) / "manifest.json").exists():
        find = read_prepared(regions, images).get
    else:
        from keras_caption.formats.region_files import open_regions

        find = functools.partial(read_regions, open_regions(regions))

    def read(image):
        features = find(image)
        if features is None:
            raise kc.InputError(f"{regions} has no image {image!r:.60}.")
        return features

    return read


def extract(model, path):
    """Extracts the features of a photo."""
    features = model.extract([path])
    return {name: np.asarray(values)[0] for name, values in features.items()}


def read_prepared(folder, images):
    """Reads features of some images of a prepared dataset, by image id as str."""
    builder = kc.datasets.load("prepared", folder)
    features, ids = {}, kc.datasets.given_ids(builder)
    for split in builder.info.splits:
        for example in kc.datasets.read(builder, split):
            number = int(example["image_id"])
            image = str(ids.get(number, number))
            if image in images:
                inputs = kc.inputs.of_example(example)
                features[image] = {n: np.asarray(x) for n, x in inputs.items()}
    return features


def read_regions(records, image):
    """Reads features of an image, by its id as str; `None` if a file has none."""
    from keras_caption.formats.fields import image_id_of

    try:
        image_id = image_id_of(image)
    except ValueError:
        return None
    if image_id not in records:
        return None
    features, boxes = records.read(image_id)
    return {"regions": features} | ({} if boxes is None else {"boxes": boxes})


def answer_rows(
    predictor: "kc.serving.Predictor",
    read_image: Callable[[str], dict[str, np.ndarray]],
    rows: Sequence[tuple[str, str]],
    n_best: int | None,
    skipped: Skipped,
) -> Iterator[str]:
    """Yields the lines to print, in memory of constant size.

    Args:
        predictor: `keras_caption.serving.Predictor` of a model that answers questions.
        read_image: Function from an image to the model's inputs.
        rows: Sequence of pairs of an image and a question.
        n_best: int, number of answers to a question, or `None` for one answer, which
            may be marked as unsure.
        skipped: `Skipped` that collects questions whose image cannot be read.
    """

    def read(row, place):
        image, question = row
        [tokens] = predictor.model.question_tokens([question])
        values = {**read_image(image), "question": tokens}
        return kc.predict.Example(place, values, question=question)

    predictions = predictor.stream(rows, read=read, n=n_best)
    for number, prediction in enumerate(predictions, start=1):
        known = None
        if isinstance(prediction, kc.predict.Fault):
            skipped.add(f"question {number}", prediction.reason)
        else:
            known = prediction
        if n_best is None:
            yield line_of(known)
            continue
        for answer, probability in known.best if known else []:
            yield f"{number}\t{probability:.4f}\t{answer}"


def line_of(prediction: "kc.predict.Prediction | None") -> str:
    """The printed line of an answer; empty if the image cannot be read."""
    if prediction is None:
        return ""
    if not prediction.text:
        return "nothing detected that it knows"
    return with_confidence(
        *(prediction.text, prediction.confidence),
        *(prediction.unsure, prediction.doubt),
    )
