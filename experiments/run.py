"""The command `keras-caption run`, for a checkout."""

import sys

from keras_caption_cli import main

if __name__ == "__main__":
    main(["run", *sys.argv[1:]])
