"""Scores a COCO results file against COCO captions files, such as c5 and c40."""

import sys

from absl import app

from keras_caption.errors import InputError
from keras_caption.evaluation import score_table

USAGE = "Usage: python -m keras_caption.evaluation CAPTIONS.json [...] RESULTS.json"


def main(argv):
    if len(argv) < 3:
        sys.exit(USAGE)
    *references, results = argv[1:]
    try:
        print(score_table(references, results))
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    app.run(main)
