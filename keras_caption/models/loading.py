import os
import pathlib

from keras_caption.errors import InputError
from keras_caption.formats.keras_files import load_keras
from keras_caption.models.task_model import TaskModel


def file_of(path: str | os.PathLike) -> pathlib.Path:
    """The file of a saved model: see `load`."""
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "best.keras"
    if not path.exists():
        raise InputError(f"There is no saved model {path}.")
    return path


def load(path: str | os.PathLike) -> TaskModel:
    """Loads a saved model of any task.

    Args:
        path: Path of a `.keras` file, or of a folder that has it as `best.keras`, as
            those of runs do.

    Returns:
        `keras_caption.models.Captioner`, `Translator` or `Classifier`.

    Raises:
        InputError: If there is none at `path`, or the file is damaged, see
            `keras_caption.formats.keras_files.load_keras`.
    """
    path = file_of(path)
    model = load_keras(path)
    if not isinstance(model, TaskModel):
        raise InputError(
            f"{path} is a {type(model).__name__}, not a captioner, translator or "
            "classifier."
        )
    return model
