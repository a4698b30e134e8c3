"""The program `keras-caption`.

It is no part of the package, so that an interruption of the imports is one sentence
too, and so that the package knows it: it imports Keras when a command needs it.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command, see `keras_caption.commands.main`, and exits."""
    try:
        from keras_caption.commands import main as run
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    run(arguments)


if __name__ == "__main__":
    main()
