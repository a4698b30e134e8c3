r"""Captions, translates or answers any number of records on Apache Beam.

    keras-caption bulk caption photos/ 'more/*.tar' --output captions/all
    keras-caption bulk translate MODEL news.jsonl --output news/de --format parquet
    keras-caption bulk answer questions.csv --output answers/all --detector yolox_nano
    keras-caption bulk caption gs://bucket/photos --output gs://bucket/captions/all \
        --runner=DataflowRunner --project=mine --region=europe-west1
    keras-caption bulk features --photos images --captions dataset_coco.json \
        --output_dir prepared/coco --direct_num_workers=2

Inputs are photos, or clips for a model of videos; folders and patterns, in which **
stands for any folders; lists with a path or a text in each row: .txt, .csv, .tsv and
.jsonl; WebDataset .tar, .parquet and .tfrecord files. Inputs may be on any file system
that Beam knows. A record has the columns `image` (or photo, path, file_name), `text`
(or sentence) or `question`, and `id` (question_id for a question). The id defaults to
the path of a photo, or to the file and number of a row.

The output is PREFIX-00000-of-00008.jsonl and so on, with the columns id, text, score,
confidence, unsure, doubt, n_best, objects with boxes, and error. A folder beside the
shards, _PREFIX, counts the records of each shard and lists faults by kind. A record
that cannot be read or answered has a row with an error; it does not affect other
records. The same command resumes: finished shards are kept.

Options that are not listed here are passed to Beam, as --name=value. `features` has the
options of `keras-caption prepare`.
"""

import argparse
import collections
import functools
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_caption.base.errors import InputError
from keras_caption.base.progress import report
from keras_caption.commands import answer, caption, prepare
from keras_caption.commands.command_line import (
    IMPORT,
    Parser,
    add_decoding,
    continuing,
    count,
    decoding_of,
    import_library,
    names,
)
from keras_caption.commands.detection import (
    DETECTOR,
    LITE_DETECTOR,
    LITE_HELP,
    add_details,
    add_detector_options,
    add_model_option,
    add_second_opinion,
    need_detector,
)
from keras_caption.commands.engines import LIMITS, add_engine_option, engine_for

if TYPE_CHECKING:
    from keras_caption.apps.bulk import Job

DEFAULTS = {"caption": caption.MODEL, "answer": answer.MODEL}
DONE = {"caption": "Captioned", "translate": "Translated", "answer": "Answered"}
TASKS = (*DONE, "features")
SHOWN = 10  # kinds of faults that are printed
# Warnings that Beam logs on the root logger: a part for Google Cloud is not installed,
# and memory is not measured.
MEANINGLESS = ("apitools not found", "Resource module is not available")
LOGGERS = (None, "apache_beam.runners.common")  # the root's, and that of failed shards


def make_parser() -> Parser:
    parser = Parser("keras-caption bulk", __doc__)
    parser.add_argument("task", choices=TASKS, help="TASK --help lists its arguments")
    return parser


def main(arguments: Sequence[str]) -> int:
    task, *rest = arguments or ["--help"]
    if task not in TASKS:
        make_parser().parse_args([task])
    run = (
        prepare_features
        if task == "features"
        else functools.partial(answer_records, task)
    )
    for name in LOGGERS:
        logging.getLogger(name).addFilter(is_meant)
    with continuing():
        return run(rest)


def is_meant(record: logging.LogRecord) -> bool:
    """Whether a log record is of use to a user."""
    _, error, _ = record.exc_info or (None, None, None)
    if isinstance(error, InputError | OSError | KeyboardInterrupt):
        return False  # the last line of the command says it
    return not record.getMessage().startswith(MEANINGLESS)


def answer_records(task: str, arguments: Sequence[str]) -> int:
    """Captions, translates or answers records; returns the exit status."""
    parser = parser_of(task)
    options, beam_arguments = parser.parse_known_intermixed_args(arguments)
    engine = engine_for(options.model, options, () if task == "answer" else LIMITS)
    from keras_caption.apps.bulk import Job, run
    from keras_caption.apps.bulk.output import count_faults
    from keras_caption.formats.folders import describe_passed_over

    detector = {}
    if task != "translate":
        detector = {
            "detector": options.detector,
            "confidence": options.confidence,
            "default_detector": LITE_DETECTOR if engine == "litert" else DETECTOR,
        }
    if task == "caption":
        detector["second_opinion"] = options.second_opinion
        detector["details"] = options.details
    job = Job(
        task,
        tuple(options.model),
        n_best=options.n_best,
        decoding={} if task == "answer" else decoding_of(options),
        imports=tuple(options.imports),
        engine=engine,
        **detector,
    )
    output, counts = run(
        job,
        options.inputs,
        options.output,
        format=options.format,
        shard_size=options.shard_size,
        options=beam_arguments,
        begin=functools.partial(begin, job, options),
    )
    faults = sorted(counts["faults"].values(), key=lambda fault: -fault["count"])
    for fault in faults[:SHOWN]:
        report(f"{fault['count']:10,} as: {fault['id']}: {fault['error']}")
    if passed_over := describe_passed_over(collections.Counter(counts["passed_over"])):
        report(f"passed over: {passed_over}")
    failed, undetected = count_faults(counts["faults"]), counts["undetected"]
    nothing = f", in {undetected:,} nothing is detected" if undetected else ""
    done = counts["read"] - failed - undetected
    print(
        f"{DONE[task]} {done:,} of {counts['read']:,} records; "
        f"{failed:,} have an error{nothing}: {output.pattern}"
    )
    return 1 if failed else 0


def begin(job: "Job", options: argparse.Namespace) -> None:
    """Imports what answers, once it is known that there is something to do."""
    if job.engine == "litert" and job.task != "answer":  # which may need no Keras
        return
    if job.task != "translate":
        need_detector(options.model, options.detector)
    import_library()


def prepare_features(arguments: Sequence[str]) -> int:
    """Prepares a dataset as `keras-caption prepare`; returns the exit status."""
    parser = prepare.make_parser("keras-caption bulk features", __doc__)
    options, beam_arguments = parser.parse_known_args(arguments)
    import_library()
    from keras_caption.apps.bulk import FeatureWriting, pipeline_options

    options.execute = FeatureWriting(pipeline_options(beam_arguments))
    prepare.prepare(options)
    return 0


def parser_of(task: str) -> Parser:
    """The parser of all options that are not Beam's."""
    parser = Parser(f"keras-caption bulk {task}", __doc__)
    parser.add_argument(
        "--import",
        action="append",
        dest="imports",
        default=[],
        metavar="FILE",
        help=f"{IMPORT}; every worker reads it",
    )
    if task == "translate":
        parser.add_argument(
            "model", type=names, help="saved model, or several separated by commas"
        )
    else:
        add_model_option(parser, DEFAULTS[task])
        add_detector_options(parser, *([LITE_HELP] if task == "caption" else []))
    if task == "caption":
        add_second_opinion(parser, default=False)
        add_details(parser)
    add_engine_option(parser)
    parser.add_argument("inputs", nargs="+", help="files, folders and patterns")
    parser.add_argument(
        "--output",
        required=True,
        metavar="PREFIX",
        help="beginning of the paths of the shards",
    )
    parser.add_argument(
        "--format",
        choices=["jsonl", "parquet"],
        default="jsonl",
        help="format of the shards",
    )
    parser.add_argument(
        "--shard_size",
        type=count,
        help="photos, or rows of a list, in a shard; defaults to 1000, and to less for "
        "few photos; any other file is one shard",
    )
    parser.add_argument(
        "--n_best", type=count, metavar="N", help="write N texts of each record"
    )
    if task != "answer":
        add_decoding(parser)
    return parser
