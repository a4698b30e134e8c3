import argparse
import contextlib
import functools
import io
import os
import pathlib
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, get_args

from absl import logging
from pydantic import ValidationError
from typing_extensions import Doc

import keras_caption as kc
from keras_caption.atomic import check_new, creating
from keras_caption.errors import InputError, missing_extras
from keras_caption.formats.python_files import run_file
from keras_caption.progress import silent
from keras_caption.settings.decoding import types
from keras_caption.validation import adapter, describe

IMPORT = (
    "Python file of your own, which is executed, and registers a mechanism, a model, a "
    "dataset or a kind of input; may be given several times"
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, as those of the library.

    Args:
        name: str, name of the command.
        description: str, the first part of the help.
        imports: bool, whether the command takes `--import`, for what a user has
            registered: mechanisms, models, datasets, kinds of input.
        needs_library: bool, whether to import the library once arguments are parsed.
        check: Function of the options, which raises `InputError` before that for what
            is wrong with them. Defaults to none.
    """

    def __init__(
        self,
        name: str,
        description: str,
        imports: bool = False,
        needs_library: bool = True,
        check: Callable[[argparse.Namespace], None] | None = None,
        **kwargs: Any,
    ):
        super().__init__(
            prog=name,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **kwargs,
        )
        self.needs_library = needs_library
        self.check = check
        if imports:
            self.add_argument(
                "--import",
                action=Import,
                metavar="FILE",
                help=IMPORT,
            )

    def parse_args(self, *args, **kwargs):
        return self._checked(super().parse_args(*args, **kwargs))

    def parse_intermixed_args(self, *args, **kwargs):
        options = super().parse_intermixed_args(*args, **kwargs)
        return self._checked(options)

    def _checked(self, options):
        if self.check:
            self.check(options)
        if self.needs_library:
            import_library(options)
        return options

    def error(self, message):
        sys.exit(f"error: {message}; see --help.")


def import_library(options: argparse.Namespace | None = None) -> None:
    """Imports what saved models hold, and with it Keras and its backend.

    Not before, so that the help and mistakes on the command line need none of them. Of
    a GPU's memory TensorFlow takes what it needs, not all that there is.

    Args:
        options: Of the command line, whose `--jit_compile` is applied.
    """
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    with quiet():
        kc.register()
        kc.compilation.keep_compilations()
    set_jit_compile(options)


def add_jit_compile(parser: argparse.ArgumentParser) -> None:
    """Adds `--jit_compile`, see `set_jit_compile`."""
    parser.add_argument(
        "--jit_compile",
        choices=("auto", "true", "false"),
        help="whether XLA compiles the model, once for each of few shapes; auto, the "
        "default, is on GPUs and TPUs, and for single examples whose shape comes back",
    )


def set_jit_compile(options: argparse.Namespace) -> None:
    """Applies `--jit_compile`, if a command has it and it is given."""
    value = getattr(options, "jit_compile", None)
    if value in ("true", "false"):
        kc.compilation.set_jit_compile(value == "true")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drops the remarks of TensorFlow, imported in a block, such as of missing GPUs.

    Not if the user has set TF_CPP_MIN_LOG_LEVEL, which TensorFlow does not follow
    before it is imported.
    """
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # what fails is an exception too
    with silent():
        yield


class Import(argparse.Action):
    """Runs a Python file, for what it registers."""

    def __call__(self, parser, namespace, values, option_string=None):
        import_library()
        run_file(values)


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
    """A list of str, at least one, separated by commas on the command line.

    A path that exists is never split.
    """
    parts, given = text.split(","), []
    while parts:
        count = max(
            (i for i in range(2, len(parts) + 1) if is_path(",".join(parts[:i]))),
            default=1,
        )
        given.append(",".join(parts[:count]))
        parts = parts[count:]
    given = [name for name in given if name.strip()]
    if not given:
        raise argparse.ArgumentTypeError(f"there is no name in {text!r}")
    return given


def is_path(text: str) -> bool:
    """Whether a path exists, or one behind a name, as in `NAME=PATH`."""
    _, equals, path = text.partition("=")
    return os.path.exists(text) or bool(equals and os.path.exists(path))


def named_path(text: str) -> tuple[str | None, str]:
    """The name and the path of `NAME=PATH`; a path that exists has no name."""
    name, equals, path = text.partition("=")
    return (None, text) if os.path.exists(text) or not equals else (name, path)


def new_file(text: str) -> str:
    """A file that a command may write: one that does not exist yet."""
    with _refusing():
        check_new(text)
    return text


def new_figure(text: str) -> str:
    """A file of a figure that a command may write, whose suffix says its format."""
    with _refusing(), missing_extras():
        from matplotlib.backend_bases import FigureCanvasBase
    formats = FigureCanvasBase.get_supported_filetypes()
    if pathlib.Path(text).suffix.removeprefix(".").lower() not in formats:
        raise argparse.ArgumentTypeError(
            f"{text} should end in .png, .pdf, .svg or another of {', '.join(formats)}"
        )
    return new_file(text)


def add_decoding(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `keras_caption.decoding.Decoding`, see `decoding_of`."""
    group = parser.add_argument_group(
        "decoding", "where omitted, those that the model was saved with"
    )
    for name, kind in types().items():
        group.add_argument(
            f"--{name}",
            type=functools.partial(option, name),
            metavar="VALUE",
            help=next(x.documentation for x in get_args(kind) if isinstance(x, Doc)),
        )


def decoding_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options of decoding that the command line has, a dict."""
    given = {name: getattr(options, name) for name in types()}
    return {name: value for name, value in given.items() if value is not None}


def option(name: str, text: str) -> Any:
    """The value of an option of decoding on the command line."""
    try:
        return adapter(types()[name]).validate_python(text)
    except ValidationError as error:
        problem = describe(error).removeprefix("content: ")
        raise argparse.ArgumentTypeError(problem) from None


@contextlib.contextmanager
def _refusing(prefix=""):
    """Converts errors of the library, without a prefix, to those of argparse."""
    try:
        yield
    except InputError as error:
        message = str(error).removeprefix(prefix).removesuffix(".")
        raise argparse.ArgumentTypeError(message) from None


class Names(argparse.Action):
    """Collects a list of str, separated by commas or spaces on the command line."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, nargs="+", type=names, default=[], **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, [x for part in values for x in part])


def write_lines(lines: Iterable[str], path: str | None) -> None:
    """Writes lines as they come, to a new file that appears whole or not at all.

    Args:
        lines: Iterable of str.
        path: Path of the file, or `None` for standard output.
    """
    with contextlib.ExitStack() as stack:
        file = sys.stdout
        if path:
            partial = stack.enter_context(creating(path))
            file = stack.enter_context(open(partial, "w", encoding="utf-8"))
        for line in lines:
            print(line, file=file)


interruptions = []  # signals; TensorFlow converts a KeyboardInterrupt to other errors


@contextlib.contextmanager
def continuing(how: str = "the same command continues") -> Iterator[None]:
    """Says what an interruption of a block is followed by, see `start`."""
    try:
        yield
    except BaseException as error:
        if interruptions or isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(how) from None
        raise


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Makes every error of a block that is interrupted a `KeyboardInterrupt`.

    An interruption that arrives where no error can leave, as in a callback of the
    garbage collector, is repeated.
    """
    hook, again = sys.unraisablehook, []

    def interrupt(number, frame):
        interruptions.append(number)
        signal.default_int_handler(number, frame)

    def repeat(unraisable):
        if unraisable.exc_type is not KeyboardInterrupt:
            hook(unraisable)
            return
        main = threading.main_thread().ident
        again.append(threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT)))
        again[-1].start()

    interruptions.clear()
    # It is another where interruptions are ignored, as in the background of a shell.
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if handled:
            signal.signal(signal.SIGINT, interrupt)
            sys.unraisablehook = repeat
        yield
    except BaseException as error:
        if interruptions and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        if handled:
            for timer in again:
                timer.cancel()
            sys.unraisablehook = hook
            signal.signal(signal.SIGINT, signal.default_int_handler)


def start(
    command: Callable[[Sequence[str]], int | None],
    arguments: Sequence[str] | None = None,
) -> None:
    """Runs a command and exits: with its status, or one sentence and another status.

    The status is 1 after a mistake, 130 after an interruption, and 141, without a
    sentence, if a pipe is closed before all is printed, as `head` does. Characters that
    the encoding of a terminal lacks are printed escaped.

    Args:
        command: Function of the command line, a list of str. What it returns is the
            exit status, or `None` for 0.
        arguments: List of str. Defaults to those of the process.
    """
    logging.set_verbosity(logging.WARNING)
    # Of Keras, where there is one region or one word to attend to.
    warnings.filterwarnings("ignore", "You are using a softmax over axis")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with interruptible(), missing_extras():
            status = command(sys.argv[1:] if arguments is None else arguments)
        print(end="", flush=True)
    except KeyboardInterrupt as interruption:
        with contextlib.suppress(OSError):  # of a pipe that was interrupted too
            print(": ".join(["Interrupted", *interruption.args]) + ".", file=sys.stderr)
        status = 130
    except BrokenPipeError:
        status = 141
    except (InputError, OSError) as error:
        status = f"error: {error}"
        if isinstance(error, OSError) and error.errno and not _can_print():
            status = f"error: Standard output: {error.strerror}"
    _can_print()
    sys.exit(status)


def _can_print():
    """Whether standard output takes what is printed; otherwise that is dropped.

    Python would try again, and complain, at its end.
    """
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def with_confidence(text: str, confidence: float, is_unsure: bool) -> str:
    """What a model says, how sure it is of it, and a mark where that is too little."""
    return f"{text} ({confidence:.0%}){' (unsure)' if is_unsure else ''}"
