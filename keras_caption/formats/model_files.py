"""Where saved models are, and what they read, known without Keras."""

import os
import pathlib
from collections.abc import Sequence

from keras_caption.errors import InputError
from keras_caption.formats import built_in, exports
from keras_caption.formats.arrays import open_zip
from keras_caption.formats.engine_files import SUFFIXES, engine_file
from keras_caption.formats.json_files import parse_json
from keras_caption.formats.keras_files import CONFIG, WEIGHTS, SavedObject

# Whether models whose extractor is of this class read clips; others are a user's.
READS_CLIPS = {
    None: False,
    "ClipExtractor": True,
    "ColouredObjects": False,
    "Extractor": False,
    "HubDetector": False,
    "Yolox": False,
}


def model_file(path: str | os.PathLike) -> pathlib.Path:
    """The file that holds the weights of a saved model here.

    Args:
        path: Of `keras_caption.models.load`, but for an address.

    Raises:
        InputError: If there is none.
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
    for file in ("best.keras", WEIGHTS, exports.WEIGHTS):
        if (path / file).is_file():
            return path / file
    raise InputError(
        f"There is no saved model in {path}: no best.keras, as a run has, no "
        f"{WEIGHTS}, as a preset has, and no {exports.WEIGHTS}, as an export has."
    )


def reads_clips(models: Sequence[str]) -> bool | None:
    """Whether saved models read clips; `None` if only Keras can say.

    Args:
        models: Sequence of what `keras_caption.models.load` takes; members of an
            ensemble read the same.

    Raises:
        InputError: If there is no such model.
    """
    if "://" in models[0]:
        return None
    file = model_file(models[0])
    if file.suffix in SUFFIXES:
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
    """The configuration, JSON, of a saved model.

    Args:
        file: Path of the file that has its weights.
        folder: Path of the preset or the export, unless it is a `.keras` file.
    """
    if file.suffix == ".keras":
        with open_zip(file) as archive:
            return archive.read(CONFIG)
    name = CONFIG if file.name == WEIGHTS else exports.CONFIG
    return (folder / name).read_bytes()
