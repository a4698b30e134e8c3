"""The JSON files in the folder of a run.

`config.json` says what a run was begun with, `history.json` holds the logs of its
epochs, and `test_scores.json`, written last, its scores.
"""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict

from keras_caption.formats.json_files import read_json

Value = str | int | float | bool | None


class Dataset(TypedDict):
    dataset: str
    data_dir: NotRequired[str | None]


class Decoding(TypedDict, extra_items=object):
    beam_size: int
    max_length: int
    length_penalty: float


class Settings(TypedDict, extra_items=dict[str, object]):
    decoding: Decoding


class Begun(Dataset):
    seed: NotRequired[int]
    precision: NotRequired[str]
    strategy: NotRequired[str]
    objective: Literal["cross-entropy", "self-critical", "ensemble"]
    members: NotRequired[dict[str, str]]
    member_objectives: NotRequired[list[str | None]]
    start: NotRequired[dict[str, str]]
    config: Settings
    overrides: NotRequired[dict[str, Value]]
    parameters: NotRequired[Annotated[int, Field(gt=0)] | None]
    trained_on: NotRequired[Dataset]


class Finished(Begun):
    model: str


class Scores(TypedDict, extra_items=FiniteFloat):
    statements: NotRequired[dict[str, FiniteFloat]]


def read_begun(folder):
    """Reads what a run was begun with.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict, or `None` if no run was begun in the folder.

    Raises:
        InputError: If `config.json` is damaged, or missing beside `last.keras`.
    """
    path = folder / "config.json"
    if not path.exists() and not (folder / "last.keras").exists():
        return None
    return read_json(path, Begun)


def read_finished(folder):
    """Reads what a finished run was, and its scores.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict of the values in `config.json` and the scores in `test_scores.json`.

    Raises:
        InputError: If one of the files is missing or wrong.
    """
    config = read_config(folder)
    defaults = {"overrides": {}, "parameters": None, "statements": {}}
    return {**defaults, **read_scores(folder), **config}


def read_config(folder):
    """Reads what a run that has a model was begun with, a dict."""
    return read_json(folder / "config.json", Finished)


def read_scores(folder):
    """Reads the scores of a finished run, a dict."""
    return read_json(folder / "test_scores.json", Scores)


def read_history(folder, monitor="val_cider"):
    """Reads the logs of all epochs of a run, a list of dict.

    Args:
        folder: `pathlib.Path` of the run.
        monitor: str, name of a log that every epoch must have.

    Raises:
        InputError: If `history.json` is missing or wrong, or has no epoch.
    """
    fields = {"epoch": int, "iterations": int, monitor: FiniteFloat}
    epoch = TypedDict("Epoch", fields, extra_items=int | float)
    return read_json(
        folder / "history.json", Annotated[list[epoch], Field(min_length=1)]
    )
