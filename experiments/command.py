"""How every script starts and ends."""

import sys

from absl import app, logging

from keras_caption.errors import InputError


def start(main, parse_flags=app.parse_flags_with_usage):
    """Runs the `main` of a script: the process ends when it returns.

    `--help` ends with status 0; a user's mistake or a failing disk with one sentence
    and status 1.

    Args:
        main: Function of the command line, a list of str. What it returns is the
            exit status, or `None` for 0.
        parse_flags: Function that takes the flags out of a command line.
    """

    def parse(argv):
        try:
            return parse_flags(argv)
        except SystemExit as end:
            asked = {"--help", "-help", "--helpfull", "--helpshort"} & set(argv)
            sys.exit(0 if asked and end.code == 1 else end.code)

    def run(argv):
        logging.set_verbosity(logging.WARNING)
        try:
            return main(argv)
        except (InputError, OSError) as error:
            sys.exit(f"error: {error}")

    app.run(run, flags_parser=parse)
