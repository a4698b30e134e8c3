import pathlib

import keras

from keras_caption.errors import InputError
from keras_caption.models.generator import Generator


def file_of(path):
    """The file of a saved captioner: see `load`."""
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "best.keras"
    if not path.exists():
        raise InputError(f"There is no saved captioner {path}.")
    return path


def load(path):
    """A saved captioner.

    Args:
        path: A `.keras` file, or a folder that has it as `best.keras`, as those of
            experiments/run.py do.

    Returns:
        `keras_caption.models.Captioner`.

    Raises:
        InputError: If there is none at `path`.
    """
    path = file_of(path)
    try:
        model = keras.models.load_model(path)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path} is no saved captioner: {error}") from error
    if not isinstance(model, Generator):
        raise InputError(f"{path} is a {type(model).__name__}, not a captioner.")
    return model
