"""Finds the files of saved models, and reads their configurations without Keras."""

import os
import pathlib
from collections.abc import Sequence

from keras_caption.base.errors import InputError
from keras_caption.formats import built_in, exports
from keras_caption.formats.arrays import open_zip
from keras_caption.formats.engine_files import SUFFIXES, engine_file
from keras_caption.formats.json_files import parse_json
from keras_caption.formats.keras_files import CONFIG, WEIGHTS, SavedObject
from keras_caption.formats.suffixes import suffix_of

# Whether models with an extractor of this class read clips. Only Keras knows classes
# of users.
READS_CLIPS = {
    None: False,
    "ClipExtractor": True,
    "ColouredObjects": False,
    "Extractor": False,
    "HubDetector": False,
    "NanoDet": False,
    "Yolox": False,
}


def model_file(path: str | os.PathLike) -> pathlib.Path:
    """Returns the file with the weights of a saved model on this machine.

    Args:
        path: As in `keras_caption.models.load`, but not an address.

    Raises:
        InputError: If there is no such model.
    """
    name, path = os.fspath(path), pathlib.Path(path)
    if file := engine_file(path):
        return file
    if not path.is_dir():
        if path.exists():
            return path
        if name in built_in.models():
            return built_in.models()[name]
        known = " and ".join(built_in.models())
        raise InputError(f"There is no saved model {path}. The package has {known}.")
    for saved in ("best.keras", WEIGHTS, exports.WEIGHTS):
        if (path / saved).is_file():
            return path / saved
    raise InputError(
        f"There is no saved model in {path}: no best.keras, as a run has, no "
        f"{WEIGHTS}, as a preset has, and no {exports.WEIGHTS}, as an export has."
    )


def reads_clips(models: Sequence[str]) -> bool | None:
    """Tells whether saved models read clips; returns `None` if only Keras knows.

    Args:
        models: Sequence of arguments of `keras_caption.models.load`, members of one
            ensemble, which all read the same inputs.

    Raises:
        InputError: If there is no such model.
    """
    if "://" in models[0]:
        return None
    file = model_file(models[0])
    if suffix_of(file) in SUFFIXES:
        return False
    try:
        config = config_of(file, pathlib.Path(models[0]))
        saved = parse_json(config, SavedObject, file)
    except (InputError, OSError, KeyError):  # loading it says what is wrong
        return None
    extractor = saved["config"].get("extractor")
    kind = extractor.get("class_name") if isinstance(extractor, dict) else None
    return READS_CLIPS.get(kind)


def config_of(file: pathlib.Path, folder: pathlib.Path) -> bytes:
    """Reads the configuration of a saved model, JSON.

    Args:
        file: Path of the file with the weights of the model.
        folder: Path of the preset or export, unless the file is a `.keras` file.
    """
    if suffix_of(file) == ".keras":
        with open_zip(file) as archive:
            return archive.read(CONFIG)
    name = CONFIG if file.name == WEIGHTS else exports.CONFIG
    return (folder / name).read_bytes()
