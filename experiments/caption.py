"""The command `keras-caption caption`, for a checkout."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from keras_caption_cli import main

if __name__ == "__main__":
    main(["caption", *sys.argv[1:]])
