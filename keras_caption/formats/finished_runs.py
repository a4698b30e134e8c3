"""JSON files of finished runs: `config.json`, `test_scores.json`, `history.json`."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict

from keras_caption.formats.json_files import read_json

Value = str | int | float | bool | None


class RunConfig(TypedDict):
    model: str
    dataset: str
    data_dir: NotRequired[str | None]
    seed: NotRequired[int]
    objective: Literal["cross-entropy", "self-critical", "ensemble"]
    config: dict[str, dict[str, object]]
    overrides: NotRequired[dict[str, Value]]
    parameters: NotRequired[Annotated[int, Field(gt=0)] | None]


class Epoch(TypedDict):
    val_cider: FiniteFloat


class Scores(TypedDict, extra_items=FiniteFloat):
    statements: NotRequired[dict[str, FiniteFloat]]


def read_run(folder):
    """Reads what a finished run was, and its scores.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict of the values in `config.json` and the scores in `test_scores.json`.

    Raises:
        InputError: If one of the files is missing or wrong.
    """
    config = read_json(folder / "config.json", RunConfig)
    scores = read_json(folder / "test_scores.json", Scores)
    defaults = {"overrides": {}, "parameters": None, "statements": {}}
    return {**defaults, **scores, **config}


def read_history(folder):
    """Reads the logs of all epochs of a run, a list of dict.

    Args:
        folder: `pathlib.Path` of the run.

    Raises:
        InputError: If `history.json` is missing or wrong, or has no epoch.
    """
    return read_json(
        folder / "history.json", Annotated[list[Epoch], Field(min_length=1)]
    )
