import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence

from absl import logging

from keras_caption.atomic import replacing
from keras_caption.errors import InputError


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, as those of the library.

    Args:
        name: str, name of the command.
        description: str, the first part of the help.
    """

    def __init__(self, name: str, description: str, **kwargs):
        super().__init__(
            prog=name,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **kwargs,
        )

    def error(self, message):
        sys.exit(f"error: {message}; see --help.")


def count(text: str) -> int:
    """An int of at least 1, on the command line."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def share(text: str) -> float:
    """A float from 0 to 1, on the command line."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def names(text: str) -> list[str]:
    """A list of str, separated by commas on the command line."""
    return [name for name in text.split(",") if name]


class Names(argparse.Action):
    """Collects a list of str, separated by commas or spaces on the command line."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, nargs="+", default=[], **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, [x for text in values for x in names(text)])


def write_lines(lines: Iterable[str], path: str | None) -> None:
    """Writes lines as they come, to a file that appears whole or not at all.

    Args:
        lines: Iterable of str.
        path: Path of the file, or `None` for standard output.
    """
    with contextlib.ExitStack() as stack:
        file = sys.stdout
        if path:
            partial = stack.enter_context(replacing(path))
            file = stack.enter_context(open(partial, "w", encoding="utf-8"))
        for line in lines:
            print(line, file=file)


def start(
    command: Callable[[Sequence[str]], int | None],
    arguments: Sequence[str] | None = None,
) -> None:
    """Runs a command and exits: with status 0, or one sentence and status 1.

    Args:
        command: Function of the command line, a list of str. What it returns is the
            exit status, or `None` for 0.
        arguments: List of str. Defaults to those of the process.
    """
    logging.set_verbosity(logging.WARNING)
    try:
        sys.exit(command(sys.argv[1:] if arguments is None else arguments))
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")
