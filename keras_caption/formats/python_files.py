"""Python files of users, which define or register extensions."""

import pathlib
import runpy
from typing import Any

from keras_caption.base.errors import InputError


def run_file(path: str) -> dict[str, Any]:
    """Runs a Python file; returns its definitions by name.

    Raises:
        InputError: If the file is missing, or fails.
    """
    check_python_file(path)
    try:
        return runpy.run_path(path)
    except Exception as error:
        raise failure(path, error) from error


def check_python_file(path: str) -> None:
    """Raises `InputError` if there is no such file."""
    if not pathlib.Path(path).is_file():
        raise InputError(f"There is no Python file {path}.")


def failure(path: str, error: Exception) -> InputError:
    """Makes the error of a user's Python file, in one sentence."""
    return InputError(f"{path} fails: {type(error).__name__}: {error}")
