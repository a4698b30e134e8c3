"""Scores captions or answers in a results file.

    keras-caption score captions_val2014.json results.json
    keras-caption score annotations.json answers.json --questions questions.json

Captions are those of COCO's format, and answers those of VQA's: with --questions, the
accuracy of the answers is printed, by type, and where people answer yes or no, their
balanced accuracy and the share of yes.
"""

from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import Parser, names
from keras_caption.formats.vqa import read_vqa


def make_parser() -> Parser:
    parser = Parser("keras-caption score", __doc__, imports=True)
    parser.add_argument(
        "captions", nargs="+", help="COCO's captions_*.json; or VQA's annotations"
    )
    parser.add_argument(
        "results",
        help="JSON, a list of image_id and caption; or of question_id and answer",
    )
    parser.add_argument(
        "--questions", metavar="FILE", help="VQA's questions, of which to score answers"
    )
    parser.add_argument(
        "--spice",
        action="store_true",
        help="compute SPICE too; its first use downloads several hundred MB",
    )
    parser.add_argument(
        "--metrics",
        type=names,
        metavar="NAMES",
        help="metrics of the table, separated by commas: COCO's by default; also "
        "CLIPScore, RefCLIPScore, and of several captions of each image Div-1, Div-2, "
        "mBLEU-4 and Self-CIDEr; or of kc.evaluation.register_metric, in a file of "
        "--import",
    )
    parser.add_argument(
        "--clip",
        metavar="PRESET",
        help="preset of CLIP of KerasHub, name or folder, for CLIPScore",
    )
    parser.add_argument("--photos", metavar="FOLDER", help="the photos, for CLIPScore")
    parser.add_argument(
        "--characters",
        action="store_true",
        help="count each character as a word, for languages without spaces",
    )
    parser.add_argument(
        "--by_length",
        action="store_true",
        help="a row for each range of the length of captions: 1 to 9, 10 to 14, 15 to "
        "19, 20 to 25 and more words",
    )
    parser.add_argument(
        "--instances",
        metavar="FILE",
        help="COCO's instances_*.json with the objects that captions should name",
    )
    return parser


def main(arguments: Sequence[str]) -> None:
    parser = make_parser()
    values = parser.parse_args(arguments)
    if values.questions is not None:
        others = {**vars(values), **dict.fromkeys(("questions", "results", "captions"))}
        given = [name for name, x in others.items() if x not in (None, False)]
        if given or len(values.captions) > 1:
            parser.error("--questions takes annotations and results, no other option")
        files = values.questions, values.captions[0], values.results
        scores = kc.evaluation.score_vqa_files(*files)
        questions = read_vqa(*files[:2])
        print(kc.evaluation.answer_tables(questions, scores))
        return
    clip = None
    if (values.clip is None) != (values.photos is None):
        parser.error("--clip and --photos are of CLIPScore, which needs both")
    if values.clip is not None:
        clip = kc.evaluation.ClipScorer(values.clip, values.photos)
    print(
        kc.evaluation.score_table(
            values.captions,
            values.results,
            values.spice,
            values.characters,
            values.instances,
            values.by_length,
            metrics=values.metrics,
            clip=clip,
        )
    )
