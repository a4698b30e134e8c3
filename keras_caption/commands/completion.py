import argparse
import importlib
from collections.abc import Mapping

from keras_caption.base.errors import missing_extras

SHELLS = ("bash", "zsh")


def script(shell: str, commands: Mapping[str, str]) -> str:
    """A script that completes the command line of `keras-caption`.

    Args:
        shell: str, one of `SHELLS`.
        commands: dict from the name of a command, which is a module, to a description.
    """
    with missing_extras():
        import shtab

    program = argparse.ArgumentParser("keras-caption")
    parsers = program.add_subparsers()
    for name, description in commands.items():
        command = importlib.import_module(f"keras_caption.commands.{name}")
        arguments = command.make_parser()
        for action in arguments._actions:  # argparse has no public list of actions
            if action.nargs != 0 and action.choices is None:
                action.complete = shtab.FILE
        parsers.add_parser(name, parents=[arguments], add_help=False, help=description)
    return shtab.complete(program, shell)
