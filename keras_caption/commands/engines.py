"""The option `--engine` of commands, which names the library that runs a model."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from keras_caption.base.errors import InputError, need_packages
from keras_caption.commands.command_line import decoding_of
from keras_caption.formats.engine_files import NAMES, SUFFIXES, engine_file
from keras_caption.formats.suffixes import suffix_of

KERAS = "keras"
PACKAGES = {"litert": "ai_edge_litert", "onnx": "onnxruntime", "openvino": "openvino"}
# Options that need the search in Keras, and the reason in messages.
LIMITS = {
    "n_best": "gives one text",
    "figure": "shows no attention",
    "stream": "does not show how texts grow",
}


def add_engine_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--engine`, see `engine_for`."""
    parser.add_argument(
        "--engine",
        choices=(KERAS, *NAMES),
        help="what runs the model: keras, the default unless a model is a file of "
        "another or `caption` can do without Keras; or litert, onnx or openvino, for "
        "which it is exported once, with its own options of decoding",
    )


def engine_for(
    models: Sequence[str], options: Any, limits: Iterable[str] = LIMITS
) -> str:
    """Returns the engine of the models, before anything is loaded.

    Args:
        models: Sequence of str, names of models.
        options: Options of the command line, `engine` among them.
        limits: Names of options that engines refuse, besides those of decoding.

    Raises:
        InputError: If a model is a file of another engine, the package of the engine is
            missing, or the engine cannot do what an option asks for.
    """
    files = {name: engine_file(name) for name in models}
    engines = {name: SUFFIXES[suffix_of(x)] for name, x in files.items() if x}
    for name, own in engines.items():
        if options.engine not in (None, own):
            raise InputError(
                f"{name} is a file of {NAMES[own]}: it takes no --engine "
                f"{options.engine}."
            )
    engine = options.engine or next(iter(engines.values()), KERAS)
    if engine == KERAS:
        return engine
    need_packages(PACKAGES[engine])
    title = NAMES[engine]
    if len(models) > 1:
        raise InputError(f"{title} runs one model, no ensemble of {len(models)}.")
    given = decoding_of(options) if hasattr(options, "beam_size") else {}
    if options.engine and given:  # else the model compares them with its own
        raise InputError(
            f"{title} runs a file that holds the whole search: --{min(given)} is fixed."
        )
    for name in limits:
        value = getattr(options, name, None)
        if value and (name != "n_best" or value > 1):
            raise InputError(f"{title} {LIMITS[name]}: leave out --{name}.")
    return engine


def files_for(models: Sequence[str], engine: str) -> list[str]:
    """Returns the files of models for an engine, and writes them if needed.

    Args:
        models: Sequence of str, names of models.
        engine: str, a result of `engine_for`.
    """
    if engine == KERAS:
        return list(models)
    from keras_caption.export.engine_cache import engine_of

    return [str(engine_of(name, engine)) for name in models]
