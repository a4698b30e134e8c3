"""The commands of the console script `keras-caption`."""

import importlib
import sys
from collections.abc import Sequence

import keras_caption as kc
from keras_caption.base.errors import InputError, hint
from keras_caption.commands.command_line import start

COMMANDS = {
    "prepare": "prepare a dataset of photos, clips or third-party features",
    "run": "train a model, score it, show its predictions and export it",
    "caption": "caption photos or clips with a trained model",
    "answer": "answer questions about images with a trained model",
    "translate": "translate sentences with a trained model",
    "bulk": "caption, translate, answer or prepare any number of records",
    "figure": "draw a figure of the papers from finished runs",
    "serve": "serve models over HTTP, as TensorFlow Serving does",
    "report": "write the report of a run, or of two runs compared",
    "score": "score a COCO results file",
    "export": "export a model for a server or another engine",
    "convert": "convert a checkpoint of the authors' code",
    "push": "upload a model to Hugging Face or Kaggle",
    "demo": "show a page for trying models in a browser",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command, and exits.

    Args:
        arguments: List of str: name of a command and its arguments. Defaults to the
            arguments of the process.
    """
    name, *rest = [*(sys.argv[1:] if arguments is None else arguments), "--help"]
    if name in FLAGS:
        start(FLAGS[name], rest[:-1])
    if name not in COMMANDS:
        sys.exit(f"error: there is no command {name!r}. {hint(name, COMMANDS)}")

    def command(arguments):  # imports within `start`, which handles interruptions
        module = importlib.import_module(f"keras_caption.commands.{name}")
        return module.main(arguments)

    start(command, rest[:-1])


def print_help(_: Sequence[str]) -> None:
    print("usage: keras-caption COMMAND ...\n")
    for command, description in COMMANDS.items():
        print(f"  {command:10}{description}")
    print("\nkeras-caption COMMAND --help lists the arguments of a command;")
    print("keras-caption --version prints the version;")
    print("keras-caption --print-completion bash prints a completion script.")


def print_version(_: Sequence[str]) -> None:
    print(f"keras-caption {kc.__version__}")


def print_completion(arguments: Sequence[str]) -> None:
    """Prints a script by which a shell completes commands and their arguments."""
    from keras_caption.commands.completion import SHELLS, script

    if len(arguments) != 1 or arguments[0] not in SHELLS:
        raise InputError(f"--print-completion needs a shell: {' or '.join(SHELLS)}.")
    print(script(arguments[0], COMMANDS))


FLAGS = {
    "--help": print_help,
    "-h": print_help,
    "--version": print_version,
    "--print-completion": print_completion,
}

__all__ = ["COMMANDS", "main", "start"]
