"""JSON files of runs that may be resumed: `config.json` and `test_scores.json`."""

from typing import Any, NotRequired

from typing_extensions import TypedDict

from keras_caption.formats.json_files import read_json


class Begun(TypedDict):
    dataset: str
    data_dir: NotRequired[str | None]
    seed: NotRequired[int]
    objective: str
    members: NotRequired[dict[str, str]]
    start: NotRequired[dict[str, str]]
    config: dict[str, dict[str, Any]]
    overrides: NotRequired[dict[str, Any]]


def read_config(folder):
    """Reads the settings that a run was begun with.

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


def check_scores(folder):
    """Raises `InputError` if the `test_scores.json` in a run's folder is damaged."""
    read_json(folder / "test_scores.json", dict[str, float | dict[str, float]])
