"""The JSON files in the folder of a run.

`config.json` says what a run was begun with, `history.json` holds the logs of its
epochs, and `test_scores.json`, written last, its scores.

The scores of epochs are times 100, as in papers; a row of the history says so by its
`scale`. Those of earlier versions have none, and scores from 0 to 1, or 10 of CIDEr-D.
"""

import pathlib
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict

from keras_caption.errors import InputError
from keras_caption.formats.json_files import read_json

SCALE = 100  # of the scores in logs of epochs
SCORES = ("val_cider", "val_bleu", "val_exact", "val_accuracy")

Value = str | int | float | bool | None
Objective = Literal["cross-entropy", "self-critical", "ensemble"]
Group = dict[str, Value]


class Dataset(TypedDict, extra_items=Value):
    dataset: str
    data_dir: NotRequired[str | None]


class Model(TypedDict, extra_items=Value):
    name: str


class Decoding(TypedDict, extra_items=Value):
    beam_size: int
    max_length: int
    length_penalty: float


class Config(TypedDict, extra_items=Value | Group):
    seed: int | None
    precision: str | None
    strategy: str | None
    deterministic: bool | None  # `None` in runs of earlier versions
    data: Dataset
    model: NotRequired[Model]
    decoding: NotRequired[Decoding]


class Phase(TypedDict):
    objective: Objective
    members: NotRequired[dict[str, str]]
    member_objectives: NotRequired[list[str | None]]
    start: NotRequired[dict[str, str]]
    model: NotRequired[str]
    parameters: NotRequired[Annotated[int, Field(gt=0)] | None]
    trained_on: NotRequired[Dataset]


class Begun(Phase):
    config: Config


class EarlierDecoding(TypedDict):
    beam_size: int
    max_length: int
    length_penalty: float


class EarlierConfig(TypedDict):
    model: NotRequired[Group]
    training: NotRequired[Group]
    self_critical: NotRequired[Group]
    decoding: EarlierDecoding


class Earlier(Phase):
    """What earlier versions recorded."""

    dataset: str
    data_dir: NotRequired[str | None]
    seed: NotRequired[int]
    precision: NotRequired[str]
    strategy: NotRequired[str]
    config: EarlierConfig


class Recorded(TypedDict, extra_items=object):
    dataset: NotRequired[object]


class Scores(TypedDict, extra_items=FiniteFloat):
    statements: NotRequired[dict[str, FiniteFloat]]
    kinds: NotRequired[dict[str, FiniteFloat]]
    answer_types: NotRequired[dict[str, FiniteFloat]]


def read_begun(folder: pathlib.Path) -> dict[str, Any] | None:
    """Reads what a run was begun with.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict, see `keras_caption.training.run_directory.describe`, or `None` if no run
        was begun in the folder. If an earlier version wrote it, `upgraded` is True.

    Raises:
        InputError: If `config.json` is damaged, or missing beside `last.keras`.
    """
    path = folder / "config.json"
    if not path.exists() and not (folder / "last.keras").exists():
        return None
    if "dataset" in read_json(path, Recorded):
        return upgrade(read_json(path, Earlier))
    return complete(read_json(path, Begun))


def complete(about: dict[str, Any]) -> dict[str, Any]:
    """Adds settings of before there was a choice, which a run did not record."""
    config = about["config"]
    if "geometry" in config.get("model", {}):
        config["model"].setdefault("signed_geometry", False)
    if "captions_per_image" in config["data"]:
        config["data"].setdefault("tokenizer", "words")
        if "self_critical" in config:
            config["self_critical"].setdefault("reward", "cider_d")
    return about


# Settings of the group `training` that have other groups now.
MOVED = {
    "data": ("captions_per_image", "max_words", "min_count", "vocabulary_split"),
    "evaluation": ("validation_beam_size",),
}
RENAMED = {"area_3x3_2": "area"}


def upgrade(earlier: dict[str, Any]) -> dict[str, Any]:
    """What `describe` would have recorded of a run of an earlier version."""
    about = dict(earlier)
    config = about.pop("config")
    training = dict(config.get("training", {}))
    groups = {
        group: {name: training.pop(name) for name in names if name in training}
        for group, names in MOVED.items()
    }
    data = {name: about.pop(name, None) for name in ("dataset", "data_dir")}
    groups["data"] = data | groups["data"]
    if "model" in about and about["objective"] != "ensemble":
        name = about["model"] = RENAMED.get(about["model"], about["model"])
        groups["model"] = {"name": name, **config.get("model", {})}
    for group, values in (
        ("training", training),
        ("self_critical", config.get("self_critical")),
    ):
        if values:
            groups[group] = values
    groups["decoding"] = {
        **config["decoding"],
        "block_trigrams": False,
        "keep_greedy": True,  # what all searches did
    }
    run = ("seed", "precision", "strategy", "deterministic")
    about["config"] = {name: about.pop(name, None) for name in run} | groups
    return {**about, "upgraded": True}


def read_finished(folder: pathlib.Path) -> dict[str, Any]:
    """Reads what a finished run was, and its scores.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict of the values in `config.json` and the scores in `test_scores.json`.

    Raises:
        InputError: If one of the files is missing or wrong.
    """
    defaults = {"parameters": None, "statements": {}}
    return {**defaults, **read_scores(folder), **read_config(folder)}


def read_config(folder: pathlib.Path) -> dict[str, Any]:
    """Reads what a run that has a model was begun with, a dict.

    Raises:
        InputError: If `config.json` is missing, damaged, or has no model.
    """
    about = read_begun(folder)
    if about is None or "model" not in about:
        raise InputError(f"{folder / 'config.json'} is not that of a finished run.")
    return about


def read_scores(folder: pathlib.Path) -> dict[str, Any]:
    """Reads the scores of a finished run, a dict."""
    return read_json(folder / "test_scores.json", Scores)


def read_history(
    folder: pathlib.Path, monitor: str = "val_cider"
) -> list[dict[str, Any]]:
    """Reads the logs of all epochs of a run, a list of dict; scores are times 100.

    Args:
        folder: `pathlib.Path` of the run.
        monitor: str, name of a log that every epoch must have.

    Raises:
        InputError: If `history.json` is missing or wrong, or has no epoch.
    """
    fields = {"epoch": int, "iterations": int, monitor: FiniteFloat}
    fields["scale"] = NotRequired[Literal[SCALE]]
    epoch = TypedDict("Epoch", fields, extra_items=int | float)
    rows = read_json(
        folder / "history.json", Annotated[list[epoch], Field(min_length=1)]
    )
    return [row if "scale" in row else rescale(row) for row in rows]


def rescale(row: dict[str, Any]) -> dict[str, Any]:
    """The logs of an epoch of an earlier version, as they are now."""
    scores = {name: SCALE * row[name] for name in SCORES if name in row}
    return {**row, **scores, "scale": SCALE}
