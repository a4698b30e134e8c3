"""Presets: folders that hold a model in the layout of KerasHub's presets.

`config.json` describes the model, `model.weights.h5` has its weights, and files in
`assets/` have the vocabularies of its tokenizers, to which `config.json` refers.
"""

import base64
import pathlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reading
from keras_caption.formats.json_files import read_json
from keras_caption.formats.keras_files import (
    CONFIG,
    JSON_BYTES,
    METADATA,
    WEIGHTS,
    SavedObject,
    check_config,
    check_weights,
    deserialize,
)

if TYPE_CHECKING:
    import keras

CARD = "README.md"
# All files that we write into a preset: a folder that holds others is not replaced.
PRESET_FILES = (WEIGHTS, CONFIG, METADATA, "assets/*", CARD)
ASSET = re.compile(r"assets/\w+/vocabulary\.(txt|spm)")


def is_preset(folder: pathlib.Path) -> bool:
    """Whether a folder holds a preset."""
    return (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file()


def read_preset(find: Callable[[str], pathlib.Path], name: str) -> "keras.Model":
    """Reads a preset, checked completely before Keras loads it.

    Args:
        find: Function from the name of a file of the preset to its path.
        name: str, name of the preset in messages.

    Returns:
        `keras.Model`, not compiled.

    Raises:
        InputError: If a file is damaged or claims too much memory, or Keras cannot
            load a model from them.
    """
    import keras

    from keras_caption.base.keras_overrides import bounded_weights

    config, weights = find(CONFIG), find(WEIGHTS)
    size = weights.stat().st_size
    if config.stat().st_size > max(JSON_BYTES, size):
        raise InputError(f"{config} is larger than the weights, and not read.")
    saved = read_json(config, SavedObject)
    saved["config"] = {n: with_assets(x, find) for n, x in saved["config"].items()}
    check_config(saved, str(config))
    with reading(weights):
        budget = check_weights(weights, size, str(weights))
    with reading(name):
        with bounded_weights(budget):
            model = deserialize(saved)
        if isinstance(model, keras.Model):
            model.load_weights(weights)
    return model


def without_asset(name: str, saved: Any, asset: tuple[str, str]) -> tuple[str, bytes]:
    """Moves the vocabulary of a tokenizer from its configuration to a file.

    Args:
        name: str, the model's argument.
        saved: dict, the serialized tokenizer, changed in place to refer to the file.
        asset: Attribute of `keras_caption.text.Tokenizer`.

    Returns:
        The file's name within the preset, and its content.
    """
    argument, file = asset
    path, value = f"assets/{name}/{file}", saved["config"][argument]
    saved["config"][argument] = {"asset": path}
    if file.endswith(".spm"):
        return path, base64.b64decode(value)
    return path, "".join(f"{word}\n" for word in value).encode()


def with_assets(saved: Any, find: Callable[[str], pathlib.Path]) -> Any:
    """Replaces references to files in a serialized argument by their content."""
    if not isinstance(saved, dict):
        return saved
    if list(saved) != ["asset"]:
        return {name: with_assets(value, find) for name, value in saved.items()}
    path = saved["asset"]
    if not (isinstance(path, str) and ASSET.fullmatch(path)):
        raise InputError(f"{find(CONFIG)} names no file of a vocabulary: {path!r:.60}.")
    file = find(path)
    with reading(file):
        content = file.read_bytes()
        if file.suffix == ".spm":
            return base64.b64encode(content).decode()
        return content.decode().split("\n")[:-1]
