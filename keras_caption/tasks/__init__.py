"""Tasks: what is predicted from what, how it is scored, and what a report shows.

A task is one module of this package, found by its name: adding one touches no other
file. It has `presets()`, the names of its models; `arguments(name)`, a model's
arguments with their values; `get_config(name)`, the built-in experiment of a model;
`GROUPS`, the schemas of its configuration; and `Task`. No task imports another.
"""

import importlib
import pkgutil
from types import ModuleType

from keras_caption.errors import InputError, hint


def of_model(name: str) -> ModuleType:
    """The task of a model.

    Args:
        name: str, name of a preset.

    Returns:
        The module of the task.

    Raises:
        InputError: If no task has a preset of that name; the nearest names are given.
    """
    names = []
    for found in pkgutil.iter_modules(__path__):
        if not found.ispkg:
            task = importlib.import_module(f"{__name__}.{found.name}")
            if name in task.presets():
                return task
            names += task.presets()
    raise InputError(f"There is no model named {name!r}. {hint(name, names)}")
