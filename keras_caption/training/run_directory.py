"""The folder of a run: its records, and whether the run can be resumed."""

import contextlib
import hashlib
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keras_caption.base.atomic import exclusive, write_json
from keras_caption.base.errors import InputError
from keras_caption.formats.runs import read_begun, read_scores, refuse_used
from keras_caption.models.initializers import INITIALIZATION_VERSION
from keras_caption.models.loading import file_of, load
from keras_caption.settings.decoding import types
from keras_caption.training.callbacks import Checkpoint
from keras_caption.training.commit import commit

# What a description says of the code that a run was trained by; no setting.
_CODE = ("commit", "initialization_version")
# Groups of the configuration that a phase does not depend on, which are not recorded.
_UNUSED = {
    "cross-entropy": ("self_critical",),
    "self-critical": (),
    "ensemble": ("model", "training", "self_critical"),
}
# Settings that may change on resume: how long to train, what the test set is, and how
# to decode it. Not `max_length`: it changes the validation scores and the samples of
# self-critical training. `data_dir` may change, as the vocabulary is compared anyway;
# `jit_compile` may too, as another machine may lack XLA. An ensemble has no training,
# and is scored anew.
_SEARCH = tuple(f"decoding.{name}" for name in types() if name != "max_length")
FREE = {
    "cross-entropy": (
        "training.epochs",
        "training.max_steps",
        "training.patience",
        "training.stop_on",
        "data.data_dir",
        "data.images_dir",
        "data.test_set",
        "evaluation.spice",
        "jit_compile",
        *_SEARCH,
    ),
    "self-critical": (
        "self_critical.epochs",
        "data.data_dir",
        "data.test_set",
        "evaluation.spice",
        "jit_compile",
        *_SEARCH,
    ),
}
# Groups of settings that change the saved model of a phase, even if they may change.
CHANGING = ("training.", "decoding.")


def describe(
    config: dict[str, Any],
    objective: str,
    start: pathlib.Path | str | None = None,
    members: Iterable[str] = (),
) -> dict[str, Any]:
    """Describes a phase of a run, for its `config.json`.

    Args:
        config: dict, the whole configuration.
        objective: str, `"cross-entropy"`, `"self-critical"` or `"ensemble"`.
        start: Saved model that self-critical training starts from.
        members: Saved models of an ensemble.

    Returns:
        dict.
    """
    starts: list[pathlib.Path | str] = [] if start is None else [start]
    members = [*members]
    description = {
        "objective": objective,
        "start": _digests(starts),
        "members": _digests(members),
        "config": {k: x for k, x in config.items() if k not in _UNUSED[objective]},
        "commit": commit(),
        "initialization_version": INITIALIZATION_VERSION,
    }
    earlier = [*map(_begun_beside, [*starts, *members])]
    if earlier:  # that of what was trained before, where it is one
        versions = {run.get("initialization_version") for run in earlier}
        description["initialization_version"] = (
            versions.pop() if len(versions) == 1 else None
        )
    if objective == "ensemble":
        description["preset"] = config["model"]["name"]  # its task is the members'
        of_members = earlier[len(starts) :]
        description["member_objectives"] = [x.get("objective") for x in of_members]
    return description


def _begun_beside(path):
    """The settings of the run that a saved model is of; empty for other models."""
    file = file_of(path)
    # A preset has another config.json than a run.
    return (file.suffix == ".keras" and read_begun(file.parent)) or {}


def _digests(paths):
    """Computes digests of saved models, which identify them wherever they are."""
    digests = {}
    for path in paths:
        with open(file_of(path), "rb") as file:
            digests[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


@contextlib.contextmanager
def locked(folders: Iterable[pathlib.Path], resume: bool) -> Iterator[None]:
    """Locks the folders of a run against other processes during a block.

    Args:
        folders: Folders of its phases.
        resume: bool, whether the folders may hold a run.

    Raises:
        InputError: If another process is writing to a folder, or as `refuse_used`.
    """
    with contextlib.ExitStack() as stack:
        for folder in folders:
            stack.enter_context(exclusive(folder))
            refuse_used(folder, resume)
        yield


class RunDirectory:
    """The folder of one phase of a run.

    Args:
        folder: `pathlib.Path`.
        description: dict, what `describe` returned.
        resume: bool, whether to resume the run in the folder, if there is one.
        is_chief: bool, whether this process writes the files.
        monitor: str, name of the log whose greatest value is the best epoch's.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        description: dict[str, Any],
        resume: bool = False,
        is_chief: bool = True,
        monitor: str = "val_cider",
    ):
        self.folder = folder
        self.description = description
        self.resume = resume
        self.is_chief = is_chief
        self.checkpoint = Checkpoint(folder, monitor)

    def is_finished(self) -> bool:
        """Whether the folder holds a run of the same settings, trained and scored.

        Raises:
            InputError: If `config.json` or `test_scores.json` is damaged.
        """
        if not (self.folder / "test_scores.json").exists():
            return False
        read_scores(self.folder)
        recorded = read_begun(self.folder)
        return recorded is not None and settings(recorded) == settings(self.description)

    def check_resumable(self) -> None:
        """Raises `InputError` if the folder holds a run with other settings."""
        recorded = read_begun(self.folder)
        if recorded is None:
            return
        # Settings that may change on resume are not compared.
        if others := differences(lasting(recorded), lasting(self.description)):
            raise InputError(
                f"The run in {self.folder} was begun with {others}. It "
                "resumes with the same settings; other settings need another "
                "--output_dir."
            )

    def load(self) -> tuple[Any, int]:
        """Loads the model to resume; returns it with its epochs, or `None` and 0."""
        last = self.folder / "last.keras"
        if not (self.resume and last.exists()):
            return None, 0
        model = load(last)
        epoch = self.checkpoint.resume(model)
        begun = read_begun(self.folder)
        assert begun is not None  # there is a last.keras
        self.description |= {name: begun.get(name) for name in _CODE}
        print(f"Resuming after epoch {epoch} of {last}")
        return model, epoch

    def begin(self) -> None:
        """Writes the description of the phase, before training."""
        if self.is_chief:
            self.reopen()
            write_json(self.folder / "config.json", self.description)

    def reopen(self) -> None:
        """Removes the scores of an earlier call, which mark the run as finished."""
        (self.folder / "test_scores.json").unlink(missing_ok=True)

    def finish(self, model: str, scores: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Writes the description, then the scores, which mark the run as finished.

        Args:
            model: str, name of the model.
            scores: dict from metric to float.
            **more: Further values to record beside the description.

        Returns:
            dict, the recorded description.
        """
        description = {"model": model, **self.description, **more}
        write_json(self.folder / "config.json", description)
        # Last: a process that ends in between leaves an unfinished run.
        write_json(self.folder / "test_scores.json", scores)
        return description


def settings(description: dict[str, Any]) -> dict[str, Any]:
    """Flattens the settings of a run, to a dict from `group.name` to value."""
    # Digests of models without their paths: files may have moved.
    flat = {"objective": description["objective"]} | {
        name: sorted(description.get(name, {}).values())
        for name in ("start", "members")
    }
    for group, values in description["config"].items():
        if isinstance(values, dict):
            flat |= {f"{group}.{name}": value for name, value in values.items()}
        else:
            flat[group] = values
    return flat


def differences(begun: dict[str, Any], now: dict[str, Any]) -> str:
    """Lists the settings that differ, for messages; empty if none does."""
    return "; ".join(
        f"{name}={begun.get(name)}, not {now.get(name)}"
        for name in begun | now
        if begun.get(name) != now.get(name)
    )


def check_start_stays(
    folders: Mapping[str, pathlib.Path], config: dict[str, Any]
) -> None:
    """Raises `InputError` if a resumed phase would change the start of the next one.

    Args:
        folders: Folders of the phases of a run, a dict from objective.
        config: dict, the whole configuration.
    """
    for (objective, folder), (_, later) in itertools.pairwise(folders.items()):
        begun = read_begun(folder)
        if begun is None or read_begun(later) is None:
            continue
        before, now = (
            {x: y for x, y in settings(z).items() if x.startswith(CHANGING)}
            for z in (begun, describe(config, objective))
        )
        if others := differences(before, now):
            raise InputError(
                f"The run in {later} began from {folder / 'best.keras'}, which was "
                f"made with {others}: other settings need another --output_dir."
            )


def lasting(description: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings that must not change on resume, a flat dict."""
    objective = description["objective"]
    if objective not in FREE:
        return {"objective": objective}
    flat = settings(description)
    return {name: x for name, x in flat.items() if name not in FREE[objective]}
