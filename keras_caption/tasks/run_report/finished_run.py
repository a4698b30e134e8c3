import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from keras_caption import tasks
from keras_caption.formats.runs import read_config, read_history, read_scores
from keras_caption.training.run_directory import settings
from keras_caption.training.task import Task

OBJECTIVES = {"self-critical": " + SCST"}


@dataclasses.dataclass
class FinishedRun:
    """A run that is trained and scored.

    Attributes:
        folder: `pathlib.Path`.
        description: dict, the content of its `config.json`.
        scores: dict, the content of its `test_scores.json`.
        task: Its task, an instance.
        model: Its model, or `None` if that is not at its place.
    """

    folder: pathlib.Path
    description: dict[str, Any]
    scores: dict[str, Any]
    task: Task
    model: Any

    @classmethod
    def open(cls, folder: pathlib.Path) -> "FinishedRun":
        """Opens a run in a folder, and its data, and loads its model.

        Raises:
            InputError: If it is not finished, or its data are not at their place.
        """
        description, scores = read_config(folder), read_scores(folder)
        kind = tasks.of_model(description["model"].split(" + ")[0])
        task, model = kind(description["config"]), None
        members = [*description.get("members", {})]
        if (folder / "best.keras").exists():
            model = task.load_model(folder)
        elif members and all(pathlib.Path(member).exists() for member in members):
            model = task.load_ensemble(members)
        return cls(folder, description, scores, task, model)

    @property
    def name(self) -> str:
        """What it is called: its model, and how that was trained last."""
        objective = self.description["objective"]
        return self.description["model"] + OBJECTIVES.get(objective, "")

    @property
    def dataset(self) -> str:
        """The dataset that it was scored on."""
        return self.description["config"]["data"]["dataset"]

    @property
    def settings(self) -> dict[str, Any]:
        """Its configuration, a flat dict from `group.name` to value."""
        return settings(self.description)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The logs of its epochs, a list of dict; an ensemble has none."""
        if not (self.folder / "history.json").exists():
            return []
        return read_history(self.folder, self.task.monitor)


def tell_apart(runs: Sequence[FinishedRun]) -> list[str]:
    """Names of runs, with the settings that differ where names are the same.

    Args:
        runs: Sequence of `FinishedRun`.

    Returns:
        List of str, all different.
    """
    names = [run.name for run in runs]
    if len({*names}) < len(names):
        own = [run.settings for run in runs]
        for key in dict.fromkeys(key for of_run in own for key in of_run):
            values = [of_run.get(key) for of_run in own]
            if key not in ("data.data_dir", "start", "members") and any(
                value != values[0] for value in values
            ):
                short = key.removeprefix("model.")
                names = [
                    f"{name}, {short}={value}"
                    for name, value in zip(names, values, strict=True)
                ]
    if len({*names}) < len(names):
        names = [f"{name} in {r.folder}" for name, r in zip(names, runs, strict=True)]
    return names
