"""The program `keras-caption`.

The module is outside of the package. Importing the package takes time, and an
interruption of that import should print one sentence too. The package also sees by this
module that it runs as the program, and imports Keras only when a command needs it.
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
