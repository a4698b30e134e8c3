"""Scores a COCO results file against COCO captions files such as c5 and c40."""

import argparse
import sys

from keras_caption.errors import InputError
from keras_caption.evaluation import score_table


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m keras_caption.evaluation", description=__doc__
    )
    parser.add_argument("captions", nargs="+", help="COCO's captions_*.json")
    parser.add_argument("results", help="JSON, a list of image_id and caption")
    parser.add_argument(
        "--spice",
        action="store_true",
        help="compute SPICE too; its first use downloads several hundred MB",
    )
    values = parser.parse_args(arguments)
    try:
        print(score_table(values.captions, values.results, values.spice))
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
