r"""Writes parallel text whose meaning is in spans of three characters.

    python experiments/papers/coded_text.py --output_dir codes

writes `train.en`, `train.de` and the other files of two languages. A source sentence is
a run of codes of three of six letters, without spaces; its translation has one sign for
each of the 216 codes. So an area of three characters is what a sign means, where it
begins at a code, and a single character says little.
"""

import itertools
import pathlib

import numpy as np

from keras_caption.base.atomic import creating
from keras_caption.commands.command_line import Parser, start

LETTERS, LENGTH = "abcdef", 3
CODES = ["".join(x) for x in itertools.product(LETTERS, repeat=LENGTH)]
SIGNS = [chr(0x4E00 + i) for i in range(len(CODES))]
CODES_OF_SENTENCE = 6
PAIRS = {"train": 20000, "val": 500, "test_2016_flickr": 1000}


def main(arguments):
    parser = Parser("experiments/papers/coded_text.py", __doc__, needs_library=False)
    parser.add_argument("--output_dir", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    for number, (split, count) in enumerate(PAIRS.items()):
        rng = np.random.default_rng(number)
        chosen = rng.integers(len(CODES), size=(count, CODES_OF_SENTENCE))
        for language, words, between in (("en", CODES, ""), ("de", SIGNS, " ")):
            lines = [between.join(words[i] for i in row) for row in chosen]
            with creating(options.output_dir / f"{split}.{language}") as partial:
                pathlib.Path(partial).write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    start(main)
