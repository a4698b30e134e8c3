"""Saved models of any form, and presets of hubs."""

import contextlib
import functools
import importlib
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from keras_caption.base.errors import InputError, missing_extras
from keras_caption.features.hub_presets import loading_preset
from keras_caption.formats import built_in, exports
from keras_caption.formats.engine_files import SUFFIXES
from keras_caption.formats.faults import reason_of, text_of_path
from keras_caption.formats.keras_files import CONFIG, WEIGHTS, load_keras
from keras_caption.formats.model_files import model_file
from keras_caption.formats.preset_files import CARD, is_preset, read_preset
from keras_caption.formats.suffixes import suffix_of
from keras_caption.models.captioner import Captioner
from keras_caption.models.cards import write_card
from keras_caption.models.classifier import Classifier
from keras_caption.models.engine_model import read_engine
from keras_caption.models.task_model import TaskModel
from keras_caption.models.translator import Translator

Model: TypeAlias = Captioner | Translator | Classifier
ADDRESS = re.compile(
    r"hf://[\w.-]+/[\w.-]+|kaggle://[\w.-]+/[\w.-]+/keras/[\w.-]+(/\d+)?"
)
PACKAGES = {"hf": "huggingface_hub", "kaggle": "kagglehub"}  # clients of the hubs
UNREACHED = "LocalEntryNotFoundError"  # error of the first one where no hub answers


def file_of(path: str | os.PathLike) -> pathlib.Path:
    """The file that holds the weights of a saved model, see `load`.

    Raises:
        InputError: If there is no saved model at `path`.
    """
    name = text_of_path(path, "A saved model")
    if "://" in name:
        find = _finder(name)
        with loading_preset(name, {}):
            return find(WEIGHTS)
    return model_file(name)


def load(path: str | os.PathLike) -> Model:
    """Loads a saved model of any task and form.

    Args:
        path: One of these:

            - path of a `.keras` file;
            - path of the folder of a run, which holds `best.keras`;
            - path of a preset, or its address, see `from_preset`;
            - path of an export, see `keras_caption.serving.export`;
            - path of a file for LiteRT, ONNX Runtime or OpenVINO, or of its folder, see
              `keras_caption.serving.export_engine`;
            - name of a model in the package, `ngsan_coco` or `mcan_photos`.

    Returns:
        `keras_caption.models.Captioner`, `Translator` or `Classifier`; or, for a file
        of another engine, a model that generates or answers in the same way.

    Raises:
        InputError: If there is no saved model at `path`, or a file is damaged, see
            `keras_caption.formats.keras_files.load_keras`.
    """
    name = text_of_path(path, "A saved model")
    if "://" in name:
        return from_preset(name)
    file = file_of(name)
    if suffix_of(file) in SUFFIXES:
        engine: Any = read_engine(file)  # which has the methods of a model
        return engine
    if file.name == WEIGHTS:
        return from_preset(name)
    if suffix_of(file) != ".keras" and exports.is_export(folder := pathlib.Path(name)):
        return _checked(exports.read_export(folder), folder)
    model = _checked(load_keras(file), file)
    if file.resolve() in {x.resolve() for x in built_in.models().values()}:
        model.name = file.stem  # the file holds the name of the preset, such as "ngsan"
    return model


def from_preset(preset: str | os.PathLike) -> Model:
    """Loads a model from a preset, as `TaskModel.save_to_preset` saves it.

    Args:
        preset: Path of a folder; an address, `hf://USER/NAME` of Hugging Face or
            `kaggle://USER/MODEL/keras/VARIATION` of Kaggle, whose files are downloaded
            once; or the name of a model in the package, as for `load`.

    Returns:
        `keras_caption.models.Captioner`, `Translator` or `Classifier`, not compiled.

    Raises:
        InputError: If there is no such preset, it is no model of `keras_caption`, a
            file is damaged, or the package that fetches it is missing.

    Example:

    ```python
    model.save_to_preset("my_captioner")
    model = keras_caption.models.from_preset("my_captioner")
    keras_caption.models.upload_preset("hf://user/my_captioner", "my_captioner")
    model = keras_caption.models.from_preset("hf://user/my_captioner")
    ```
    """
    name = text_of_path(preset, "A preset")
    if name in built_in.models() and not os.path.isdir(name):
        return load(name)
    find = _finder(name)
    with loading_preset(name, {}) if "://" in name else contextlib.nullcontext():
        return _checked(read_preset(find, name), name)


def upload_preset(uri: str, preset: str | os.PathLike) -> None:
    """Uploads a preset to Hugging Face or Kaggle, as `keras_hub.upload_preset` does.

    A preset without a card, `README.md`, gets one first.

    Args:
        uri: str, the address, see `from_preset`.
        preset: Path of the folder that `TaskModel.save_to_preset` wrote.

    Raises:
        InputError: If there is no such preset, or it cannot be uploaded.
    """
    scheme = _check_address(uri)
    folder = pathlib.Path(preset)
    if not is_preset(folder):
        raise InputError(f"{folder} is no preset: it has no {CONFIG} or no {WEIGHTS}.")
    if not (folder / CARD).exists():
        write_card(folder, from_preset(folder))
    with missing_extras():
        import keras_hub

    try:
        if scheme == "hf":
            import huggingface_hub

            # KerasHub replaces the card of the folder by its own, and removes it, if
            # the hub has no card yet: this card is uploaded first.
            repository = uri.removeprefix("hf://")
            huggingface_hub.create_repo(repository, exist_ok=True)
            huggingface_hub.upload_file(
                path_or_fileobj=folder / CARD, path_in_repo=CARD, repo_id=repository
            )
        keras_hub.upload_preset(uri, str(folder))
    except Exception as error:  # clients of hubs raise errors of many classes
        raise InputError(
            f"{folder} cannot be uploaded to {uri}: {reason_of(error)}."
        ) from error


def _checked(model: Any, name: Any) -> TaskModel:
    """Returns a model of `keras_caption`, and refuses any other."""
    if not isinstance(model, TaskModel):
        raise InputError(
            f"{name} is a {type(model).__name__}, not a captioner, translator or "
            "classifier."
        )
    return model


def _finder(preset: str) -> Callable[[str], pathlib.Path]:
    """A function from a file name to its path in a preset, which a hub may fetch."""
    if "://" not in preset:
        return functools.partial(_find_in_folder, pathlib.Path(preset))
    _check_address(preset)
    return functools.partial(_find_in_hub, preset)


def _check_address(address: str) -> str:
    """Checks the address of a preset, and that the hub's client is installed.

    Returns:
        str, the scheme, a key of `PACKAGES`.
    """
    if not ADDRESS.fullmatch(address):
        raise InputError(
            f"The address {address} should be hf://USER/NAME or "
            "kaggle://USER/MODEL/keras/VARIATION."
        )
    scheme = address.partition("://")[0]
    with missing_extras():
        importlib.import_module(PACKAGES[scheme])
    return scheme


def _find_in_folder(folder: pathlib.Path, name: str) -> pathlib.Path:
    if not (folder / name).is_file():
        raise InputError(f"There is no file {name} in the preset {folder}.")
    return folder / name


def _find_in_hub(preset: str, name: str) -> pathlib.Path:
    with missing_extras():
        from keras_hub.src.utils.preset_utils import get_file

    try:
        return pathlib.Path(get_file(preset, name))
    except FileNotFoundError as error:
        if type(error.__cause__).__name__ == UNREACHED:
            raise ConnectionError from None
        raise InputError(f"There is no file {name} in the preset {preset}.") from None
