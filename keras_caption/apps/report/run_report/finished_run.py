import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from keras_caption import tasks
from keras_caption.formats.runs import read_config, read_history, read_scores
from keras_caption.training.run_directory import settings
from keras_caption.training.task import Task

OBJECTIVES = {"self-critical": " + SCST"}
# Settings that do not distinguish runs: folders of data, and digests of models.
ASIDE = ("data.data_dir", "data.images_dir", "start", "members")


@dataclasses.dataclass
class RunRecord:
    """The record of a run, without its data and its model.

    Attributes:
        folder: `pathlib.Path`.
        description: dict, the content of its `config.json`.
    """

    folder: pathlib.Path
    description: dict[str, Any]

    @classmethod
    def read(cls, folder: pathlib.Path) -> "RunRecord":
        """Reads a finished run.

        Raises:
            InputError: If the folder holds no run, or a file is damaged.
        """
        return cls(folder, read_config(folder))

    @property
    def kind(self) -> type[Task]:
        """The class of the run's task; all members of an ensemble have the same."""
        return tasks.of_run(self.description)

    @property
    def name(self) -> str:
        """The name of the run: its model, and a suffix for self-critical training."""
        objective = self.description["objective"]
        return self.description["model"] + OBJECTIVES.get(objective, "")

    @property
    def dataset(self) -> str:
        """The dataset that the run is scored on."""
        return self.description["config"]["data"]["dataset"]

    @property
    def settings(self) -> dict[str, Any]:
        """The run's configuration, a flat dict from `group.name` to value."""
        return settings(self.description)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The logs of the epochs, a list of dict; empty for an ensemble."""
        if not (self.folder / "history.json").exists():
            return []
        return read_history(self.folder, self.kind.monitor)


@dataclasses.dataclass
class FinishedRun(RunRecord):
    """A run that has been trained and scored, with its data and its model.

    Attributes:
        scores: dict, the content of its `test_scores.json`.
        task: Instance of the run's task.
        model: Model of the run, or `None` if its file is missing.
    """

    scores: dict[str, Any]
    task: Task
    model: Any

    @classmethod
    def open(cls, folder: pathlib.Path) -> "FinishedRun":
        """Opens a run in a folder: opens its data, and loads its model.

        Raises:
            InputError: If the run is not finished, or its data are missing.
        """
        record, scores, model = RunRecord.read(folder), read_scores(folder), None
        task = record.kind(record.description["config"])
        members = [*record.description.get("members", {})]
        if (folder / "best.keras").exists():
            model = task.load_model(folder)
        elif members and all(pathlib.Path(member).exists() for member in members):
            model = task.load_ensemble(members)
        return cls(folder, record.description, scores, task, model)


def tell_apart(runs: Sequence[RunRecord]) -> list[str]:
    """Names of runs, with settings that differ if names are the same.

    Args:
        runs: Sequence of `RunRecord`.

    Returns:
        List of str, all different.
    """
    names = [run.name for run in runs]
    if len({*names}) < len(names):
        settings = [run.settings for run in runs]
        for key in dict.fromkeys(key for run in settings for key in run):
            values = [run.get(key) for run in settings]
            if key not in ASIDE and any(value != values[0] for value in values):
                short = key.removeprefix("model.")
                names = [
                    f"{name}, {short}={value}"
                    for name, value in zip(names, values, strict=True)
                ]
    if len({*names}) < len(names):
        names = [f"{name} in {r.folder}" for name, r in zip(names, runs, strict=True)]
    return names
