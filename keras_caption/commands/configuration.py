"""The configuration of an experiment: a file, and values from the command line."""

import copy
from typing import Any

from keras_caption import models, tasks
from keras_caption.base.errors import InputError
from keras_caption.formats.built_in import find_file
from keras_caption.formats.python_files import failure, run_file
from keras_caption.settings.catalogue import check_name
from keras_caption.settings.run import (
    DEFAULT_MODEL,
    RUN,
    Run,
    check_names,
    documentation,
    model_settings,
    validate,
)
from keras_caption.training.task import Task

SELF_CRITICAL = "self_critical"


def make_config(
    path: str | None, settings: dict[str, Any]
) -> tuple[type[Task], dict[str, Any]]:
    """Makes the configuration of a run.

    Args:
        path: Python file whose `get_config()` returns a dict of groups, each a dict of
            values; or the name of an experiment in the package, such as `ngsan_coco`.
            `None` stands for the built-in experiment of the model's task.
        settings: dict from the name of a value, such as `model.num_layers`, to a new
            value, which may be a str from the command line.

    Returns:
        The class of the task, and the whole configuration, a dict.

    Raises:
        InputError: If the file cannot be read, or a name or a value is wrong. The
            message names the file, or the value as `--config.GROUP.NAME`.
    """
    path = path and find_file(path)
    config = {} if path is None else read_file(path)
    model = settings.get("model.name") or named_model(config) or DEFAULT_MODEL
    task = tasks.of_model(model)
    where = "--config." if path is None else f"{path}: "
    built_in = task.get_config(model)
    config = RUN | copy.deepcopy(config or built_in)
    if SELF_CRITICAL in built_in:  # a file need not have what it does not train by
        config.setdefault(SELF_CRITICAL, built_in[SELF_CRITICAL])
    groups = groups_of(task, model)
    config["model"] = complete_model(task, model, config.get("model", {}), where)
    if isinstance(config.get("decoding"), dict):
        config["decoding"] = {**models.decoding(model), **config["decoding"]}
    # The file is validated before the command line, so that an error names its source.
    config = validate(config, groups, where)
    for name, value in settings.items():
        apply(config, name, value)
    return task, validate(config, groups)


def groups_of(task: type[Task], model: str) -> dict[str, type]:
    """The schemas of the groups of a model's configuration, by name."""
    return {"model": model_settings(models.argument_types(model)), **task.groups}


def describe(task: type[Task], config: dict[str, Any]) -> dict[str, tuple[Any, str]]:
    """Lists all values of a configuration.

    Returns:
        dict from the name of a value, such as `model.num_layers`, to the value and its
        description.
    """
    schemas = {"": Run, **groups_of(task, config["model"]["name"])}
    listed = {}
    for group, schema in schemas.items():
        values = config[group] if group else config
        for name, kind in schema.__annotations__.items():
            if name in values:
                text = documentation(kind)
                listed[f"{group}.{name}".lstrip(".")] = values[name], text
    return listed


def read_file(path: str) -> dict[str, Any]:
    """Runs a Python file, and returns the result of its `get_config()`, a dict.

    Raises:
        InputError: If the file is missing, fails, or has no `get_config`.
    """
    names = run_file(path)
    try:
        config = names["get_config"]() if "get_config" in names else None
    except Exception as error:
        raise failure(path, error) from error
    if not (isinstance(config, dict) and config):
        raise InputError(
            f"{path} should have a function get_config() that returns a dict of groups."
        )
    return config


def named_model(config):
    """Name of the model in a configuration that is not validated yet, or `None`."""
    model = config.get("model")
    return model.get("name") if isinstance(model, dict) else None


def complete_model(task, name, values, where):
    """All arguments of a model: defaults of its preset, replaced by those of a file.

    A file may have arguments of other models of the task: they are ignored, so that one
    file is an experiment of several models.
    """
    arguments = {"name": name, **models.arguments(name)}
    if not isinstance(values, dict):
        raise InputError(f"{where}model should be a dict, not {values!r}.")
    known = {}
    for preset in task.presets():
        known |= models.argument_types(preset)
    check_names({"model": values}, {"model": model_settings(known)}, where)
    replaced = {k: x for k, x in values.items() if k in arguments and k != "name"}
    return arguments | replaced


def apply(config, name, value):
    """Replaces the value of a name such as `model.num_layers`."""
    check_name(config, name)
    group, _, key = name.rpartition(".")
    values = config[group] if group else config
    values[key] = None if value in ("None", "none") else value
