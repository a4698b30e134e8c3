"""Scores a COCO results file against a COCO captions file."""

import sys

from absl import app

from keras_caption.errors import InputError
from keras_caption.evaluation import score_files, table

USAGE = "Usage: python -m keras_caption.evaluation CAPTIONS.json RESULTS.json"


def main(argv):
    if len(argv) != 3:
        sys.exit(USAGE)
    try:
        scores, missing = score_files(*argv[1:])
    except InputError as error:
        sys.exit(f"error: {error}")
    print(table({"": scores}))
    for name, reason in missing.items():
        print(f"{name}: {reason}")


if __name__ == "__main__":
    app.run(main)
