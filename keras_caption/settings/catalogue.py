"""The built-in experiment of each model, as text: names, values and descriptions.

Declarations of models and tasks need Keras, which takes seconds to import. What help
and messages about misspelt names say of them is written to a file by
docs/catalogue.py.
"""

import json
import pathlib
from typing import Any

from keras_caption.base.errors import InputError, hint, need_model
from keras_caption.settings.run import RUN

FILE = pathlib.Path(__file__).with_suffix(".json")


def read_catalogue() -> dict[str, dict[str, list[str]]]:
    """Reads the values of the built-in experiments.

    Returns:
        dict from the name of a model to a dict from the name of a value, such as
        `model.num_layers`, to a list of the value and its description, as text.
    """
    return {
        model: kind["values"] | others
        for kind in json.loads(FILE.read_text(encoding="utf-8"))
        for model, others in kind["models"].items()
    }


def check_known(model: str | None, names: list[str]) -> None:
    """Checks names of a command line against the catalogue.

    Args:
        model: str, name of a model; `None` stands for any.
        names: List of str, names of values, such as `model.num_layers`.

    Raises:
        InputError: If a name is not in the catalogue. The message names similar ones.
    """
    catalogue = read_catalogue()
    if model is not None:
        need_model(model, catalogue)
    groups: dict[str, Any] = {**RUN}
    for known in catalogue.values() if model is None else [catalogue[model]]:
        for name in known:
            group, _, key = name.rpartition(".")
            if group:
                groups.setdefault(group, {})[key] = None
    for name in names:
        check_name(groups, name)


def check_name(config: dict[str, Any], name: str) -> None:
    """Checks the name of a value against a configuration.

    Args:
        config: dict from group to a dict of values, and the values of `RUN`.
        name: str, such as `model.num_layers`.

    Raises:
        InputError: If the configuration has no such value.
    """
    group, _, key = name.rpartition(".")
    values = config.get(group, {}) if group else config
    if group and isinstance(values, dict) and values and key not in values:
        # Similar names are searched in the group only: every name of the group is
        # similar to this one by its first part.
        raise InputError(f"--config.{group} has no {key!r}. {hint(key, values)}")
    if not isinstance(values, dict) or isinstance(values.get(key, {}), dict):
        known = [
            f"{group}.{key}"
            for group, values in config.items()
            if isinstance(values, dict)
            for key in values
        ]
        raise InputError(f"--config has no {name!r}. {hint(name, [*known, *RUN])}")
