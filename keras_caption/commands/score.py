"""Scores a COCO results file against COCO captions files such as c5 and c40."""

from collections.abc import Sequence

import keras_caption as kc
from keras_caption.commands.command_line import Parser


def make_parser() -> Parser:
    parser = Parser("keras-caption score", __doc__)
    parser.add_argument("captions", nargs="+", help="COCO's captions_*.json")
    parser.add_argument("results", help="JSON, a list of image_id and caption")
    parser.add_argument(
        "--spice",
        action="store_true",
        help="compute SPICE too; its first use downloads several hundred MB",
    )
    parser.add_argument(
        "--characters",
        action="store_true",
        help="count each character as a word, for languages without spaces",
    )
    parser.add_argument(
        "--instances",
        metavar="FILE",
        help="COCO's instances_*.json with the objects that captions should name",
    )
    return parser


def main(arguments: Sequence[str]) -> None:
    values = make_parser().parse_args(arguments)
    print(
        kc.evaluation.score_table(
            values.captions,
            values.results,
            values.spice,
            values.characters,
            values.instances,
        )
    )
