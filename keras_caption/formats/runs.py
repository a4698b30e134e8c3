"""The JSON files in the folder of a run.

`config.json` holds the settings of a run, `history.json` the logs of its epochs, and
`test_scores.json`, written last, its scores.

Scores of epochs are multiplied by 100, as in papers; `scale` in a row of the history
records this.
"""

import pathlib
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import existing_folder
from keras_caption.formats.json_files import read_json

SCALE = 100  # of the scores in logs of epochs
# Scores that are not multiplied by 100 for display.
UNSCALED = ("log_perplexity", "log_probability")
# Scores of parts of the test split that a run may have, with their titles.
PARTS = {
    "statements": "Share of statements that are true",
    "objects": "Objects of COCO that captions name",
    "answer_types": "Accuracy by type of the answer",
    "kinds": "Accuracy by type of the question",
    "yes_no": "Answers to questions that people answer with yes or no",
}

# Patterns of what a run of any task replaces beside its models; a card that it did not
# write stays.
RESULTS = (
    "1",
    "attention.png",
    "command.json",
    "history.json",
    "report.html",
    "server_results.json",
    "test_items.json",
    "test_references.json",
    "test_results.json",
    "test_scores.json",
    "test_translations.txt",
    "weights/epoch_*.npz",
)

# mypy does not know `extra_items` of PEP 728.
Value = str | int | float | bool | None
Objective = Literal["cross-entropy", "self-critical", "ensemble"]
Group = dict[str, Value]


class Dataset(TypedDict, extra_items=Value):  # type: ignore[call-arg]
    dataset: str
    data_dir: NotRequired[str | None]


class Model(TypedDict, extra_items=Value):  # type: ignore[call-arg]
    name: str


class RecordedDecoding(TypedDict, extra_items=Value | tuple[str, ...]):  # type: ignore[call-arg]
    beam_size: int
    max_length: int
    length_penalty: float


class Config(TypedDict, extra_items=Value | Group):  # type: ignore[call-arg]
    seed: int
    precision: str
    strategy: str
    deterministic: bool
    data: Dataset
    model: NotRequired[Model]
    decoding: NotRequired[RecordedDecoding]


class Begun(TypedDict):
    objective: Objective
    members: NotRequired[dict[str, str]]
    member_objectives: NotRequired[list[str | None]]
    start: NotRequired[dict[str, str]]
    model: NotRequired[str]
    preset: NotRequired[str]
    parameters: NotRequired[Annotated[int, Field(gt=0)] | None]
    trained_on: NotRequired[Dataset]
    commit: NotRequired[str | None]
    initialization_version: NotRequired[int | None]
    config: Config


class Scores(TypedDict, extra_items=FiniteFloat):  # type: ignore[call-arg]
    statements: NotRequired[dict[str, FiniteFloat]]
    kinds: NotRequired[dict[str, FiniteFloat]]
    answer_types: NotRequired[dict[str, FiniteFloat]]
    yes_no: NotRequired[dict[str, FiniteFloat]]
    objects: NotRequired[dict[str, FiniteFloat]]
    notes: NotRequired[dict[str, str]]


def read_begun(folder: pathlib.Path) -> dict[str, Any] | None:
    """Reads the settings with which a run was begun.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict, see `keras_caption.training.run_directory.describe`, or `None` if no run
        was begun in the folder.

    Raises:
        InputError: If `config.json` is damaged, or missing beside `last.keras`.
    """
    path = folder / "config.json"
    if not path.exists() and not (folder / "last.keras").exists():
        return None
    return read_json(path, Begun)


def refuse_used(folder: pathlib.Path, resume: bool = False) -> None:
    """Raises `InputError` if a folder holds a run, or files that one would replace.

    Args:
        folder: `pathlib.Path`.
        resume: bool, whether the folder may hold a run, which began with `config.json`.
    """
    if resume and any((folder / x).exists() for x in ("config.json", "last.keras")):
        return
    for name in ("config.json", "last.keras", "best.keras"):
        if not resume and (folder / name).exists():
            raise InputError(
                f"{folder} holds a run already: resume it with --resume, or name "
                "another --output_dir."
            )
    for pattern in ("best.keras", *RESULTS):
        for path in folder.glob(pattern):
            raise InputError(
                f"{folder} holds {path.relative_to(folder)}, which a run would "
                "replace: name another --output_dir."
            )


def read_finished(folder: pathlib.Path) -> dict[str, Any]:
    """Reads the settings and the scores of a finished run.

    Args:
        folder: `pathlib.Path` of the run.

    Returns:
        dict of the values in `config.json` and the scores in `test_scores.json`.

    Raises:
        InputError: If a file is missing or does not follow the format.
    """
    defaults: dict[str, Any] = {"parameters": None, "statements": {}}
    return {**defaults, **read_scores(folder), **read_config(folder)}


def read_config(folder: pathlib.Path) -> dict[str, Any]:
    """Reads the settings of a run that has a model, a dict.

    Raises:
        InputError: If there is no such folder, or its `config.json` is missing,
            damaged, or has no model.
    """
    description = read_begun(existing_folder(folder))
    if description is None or "model" not in description:
        raise InputError(f"{folder / 'config.json'} is not that of a finished run.")
    return description


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
    make: Any = TypedDict  # of which type checkers know literals only
    fields = {"epoch": int, "iterations": int, monitor: FiniteFloat}
    epoch = make("Epoch", {**fields, "scale": Literal[SCALE]}, extra_items=int | float)
    return read_json(
        folder / "history.json",
        Annotated[list[epoch], Field(min_length=1)],  # type: ignore[valid-type]
    )
