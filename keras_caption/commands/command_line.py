import argparse
import contextlib
import functools
import io
import os
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
from keras_caption.base.arguments import Count, Share
from keras_caption.base.atomic import check_new, creating
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.progress import silent
from keras_caption.base.validation import adapter, describe
from keras_caption.formats.python_files import run_file
from keras_caption.formats.suffixes import suffix_of
from keras_caption.settings.decoding import types

IMPORT = (
    "Python file that is executed first, to register a mechanism, a model, a dataset "
    "or a kind of input of your own; may be repeated"
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, as those of the library.

    Args:
        name: str, name of the command.
        description: str, the first part of the help.
        imports: bool, whether the command has `--import`, for parts that a user
            registers.
        needs_library: bool, whether to import the library after arguments are parsed.
        check: Function of the options that raises `InputError` for a mistake, before
            the library is imported. Defaults to no check.
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
            allow_abbrev=False,  # an abbreviation may become ambiguous later
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

    def parse_known_intermixed_args(self, args=None, namespace=None):
        # Python 3.11 would take names behind `--` for options.
        if args and "--" in args:
            return self.parse_known_args(args, namespace)
        return super().parse_known_intermixed_args(args, namespace)

    def _checked(self, options):
        if self.check:
            self.check(options)
        if self.needs_library:
            import_library(options)
        return options

    def error(self, message):
        sys.exit(f"error: {message}; see --help.")


def import_library(options: argparse.Namespace | None = None) -> None:
    """Imports the classes of saved models, and with them Keras and its backend.

    This happens after arguments are parsed: the help, and messages about mistakes, need
    neither. TensorFlow is set to take memory of a GPU as needed, not all of it.

    Args:
        options: Options of the command line, whose `--jit_compile` is applied.
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
        "default: on GPUs and TPUs, and for single examples of a repeated shape",
    )


def set_jit_compile(options: argparse.Namespace | None) -> None:
    """Applies `--jit_compile`, if the command line has it."""
    value = getattr(options, "jit_compile", None)
    if value in ("true", "false"):
        kc.compilation.set_jit_compile(value == "true")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drops the log of TensorFlow's import in a `with` block, such as of missing GPUs.

    The log is kept if the user has set TF_CPP_MIN_LOG_LEVEL to less than 3. The
    variable alone is not enough: TensorFlow prints some lines before it reads it.
    """
    # At 3, nothing is logged: failures are exceptions anyway.
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") != "3":
        yield
        return
    with silent():
        yield


def concerns_users(record: Any) -> bool:
    """Whether a record of the log is none of TFDS about what TFDS itself calls."""
    return "`FeatureConnector.dtype` is deprecated" not in record.getMessage()


class Import(argparse.Action):
    """Runs a Python file that registers parts of models."""

    def __call__(self, parser, namespace, values, option_string=None):
        import_library()
        run_file(values)


def parsed(kind: Any, text: str) -> Any:
    """Parses a value of a type, such as those of `keras_caption.base.arguments`."""
    try:
        return adapter(kind).validate_python(text)
    except ValidationError as error:
        problem = describe(error).removeprefix("content: ")
        raise argparse.ArgumentTypeError(problem) from None


def number(kind: Any) -> Callable[[str], Any]:
    """The parser of a number, which refuses NaN and infinity."""
    return functools.partial(parsed, kind)


count = number(Count)
share = number(Share)


def names(text: str) -> list[str]:
    """Parses a list of at least one str, separated by commas.

    An existing path is never split at its commas.
    """
    parts, listed = text.split(","), []
    while parts:
        # The longest beginning that is a path, else one part.
        count = max(
            (i for i in range(2, len(parts) + 1) if is_path(",".join(parts[:i]))),
            default=1,
        )
        listed.append(",".join(parts[:count]))
        parts = parts[count:]
    listed = [name for name in listed if name.strip()]
    if not listed:
        raise argparse.ArgumentTypeError(f"there is no name in {text!r}")
    return listed


def is_path(text: str) -> bool:
    """Whether a text is an existing path, or `NAME=PATH` with an existing path."""
    _, equals, path = text.partition("=")
    return os.path.exists(text) or bool(equals and os.path.exists(path))


def named_path(text: str) -> tuple[str | None, str]:
    """Parses `NAME=PATH`; an existing path, or a text without "=", has no name."""
    name, equals, path = text.partition("=")
    return (None, text) if os.path.exists(text) or not equals else (name, path)


def new_file(text: str) -> str:
    """Parses the path of a file to write, which must not exist yet."""
    with _refusing():
        check_new(text)
    return text


def new_figure(text: str) -> str:
    """Parses the path of a figure to write. Its suffix decides the format."""
    with _refusing(), missing_extras():
        from matplotlib.backend_bases import FigureCanvasBase
    formats = FigureCanvasBase.get_supported_filetypes()
    if suffix_of(text).removeprefix(".") not in formats:
        raise argparse.ArgumentTypeError(
            f"{text} should end in .png, .pdf, .svg or another of {', '.join(formats)}"
        )
    return new_file(text)


def add_decoding(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `keras_caption.decoding.Decoding`, see `decoding_of`."""
    group = parser.add_argument_group(
        "decoding", "options that replace those saved with the model"
    )
    for name, kind in types().items():
        group.add_argument(
            f"--{name}",
            type=functools.partial(option, name),
            metavar="VALUE",
            help=next(x.documentation for x in get_args(kind) if isinstance(x, Doc)),
        )


def decoding_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options of decoding on the command line, a dict."""
    values = {name: getattr(options, name) for name in types()}
    return {name: value for name, value in values.items() if value is not None}


def option(name: str, text: str) -> Any:
    """Parses the value of an option of decoding."""
    return parsed(types()[name], text)


@contextlib.contextmanager
def _refusing():
    """Converts an `InputError` to an error of argparse."""
    try:
        yield
    except InputError as error:
        message = str(error).removesuffix(".")
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


# Signals that interrupt: Ctrl-C, a batch system or `kill`, and a closed terminal. Each
# has the handler that it is replaced for: another one, such as that of `nohup`, stays.
HANDLERS: dict[int, Any] = {
    getattr(signal, name): before
    for name, before in {
        "SIGINT": signal.default_int_handler,
        "SIGTERM": signal.SIG_DFL,
        "SIGHUP": signal.SIG_DFL,
    }.items()
    if hasattr(signal, name)  # Windows has no SIGHUP
}
# Signals of interruptions. They are recorded, since TensorFlow converts a
# KeyboardInterrupt to other errors.
interruptions: list[int] = []


@contextlib.contextmanager
def continuing(how: str = "the same command continues") -> Iterator[None]:
    """Adds to an interruption of a `with` block how to go on, see `start`."""
    try:
        yield
    except BaseException as error:
        if interruptions or isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(how) from None
        raise


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Converts any error of an interrupted `with` block to `KeyboardInterrupt`.

    An interruption is repeated if it arrives where Python ignores errors, such as in a
    callback of the garbage collector.
    """
    hook, again = sys.unraisablehook, []

    def interrupt(number, frame):
        interruptions.append(number)
        signal.default_int_handler(number, frame)

    def repeat(unraisable):
        if not (interruptions and unraisable.exc_type is KeyboardInterrupt):
            hook(unraisable)
            return
        main = threading.main_thread().ident
        # Later, since a signal at once may arrive in the same callback.
        repeated = main, interruptions[-1]
        again.append(threading.Timer(0.1, signal.pthread_kill, repeated))
        again[-1].start()

    interruptions.clear()
    # The handler is another if a signal is ignored, as SIGINT is in the background of a
    # shell.
    handled = [x for x, before in HANDLERS.items() if signal.getsignal(x) is before]
    try:
        for number in handled:
            signal.signal(number, interrupt)
        sys.unraisablehook = repeat
        yield
    except BaseException as error:
        if interruptions and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
    finally:
        for timer in again:
            timer.cancel()
        sys.unraisablehook = hook
        for number in handled:
            signal.signal(number, HANDLERS[number])


def start(
    command: Callable[[Sequence[str]], int | None],
    arguments: Sequence[str] | None = None,
) -> None:
    """Runs a command, and exits with its status. A mistake ends it with one sentence.

    The status is 1 after a mistake, 128 and the number of the signal after an
    interruption, and 141, without a sentence, if the reader of a pipe closes it early,
    as `head` does. Characters that the encoding of a terminal lacks are printed
    escaped.

    Args:
        command: Function of the command line, a list of str. It returns the exit
            status, or `None` for 0.
        arguments: List of str. Defaults to the arguments of the process.
    """
    logging.set_verbosity(logging.WARNING)
    logging.get_absl_logger().addFilter(concerns_users)
    # Keras warns of attention to a single region or word, which is no mistake.
    warnings.filterwarnings("ignore", "You are using a softmax over axis")
    # Pillow's: photos that are too large are refused anyway.
    warnings.filterwarnings("ignore", "Image size .* exceeds limit")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    status: int | str | None
    try:
        with interruptible(), missing_extras():
            status = command(sys.argv[1:] if arguments is None else arguments)
        print(end="", flush=True)
    except KeyboardInterrupt as interruption:
        with contextlib.suppress(OSError):  # a pipe may be closed by the interruption
            print(": ".join(["Interrupted", *interruption.args]) + ".", file=sys.stderr)
        status = 128 + (interruptions or [signal.SIGINT])[0]
    except BrokenPipeError:
        status = 141
    except (InputError, OSError) as error:
        status = f"error: {error}"
        if isinstance(error, OSError) and error.errno and not _can_print():
            status = f"error: Standard output: {error.strerror}"
    _can_print()
    sys.exit(status)


def _can_print():
    """Whether standard output can be written; else the null device replaces it.

    Otherwise Python would try again at its end, and print an error.
    """
    try:
        print(end="", flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def with_confidence(
    text: str, confidence: float, is_unsure: bool, doubt: str = ""
) -> str:
    """A text with its confidence, and a mark if the model is unsure, and why."""
    unsure = f" (unsure{doubt and ': '}{doubt})" if is_unsure else ""
    return f"{text} ({confidence:.0%}){unsure}"
