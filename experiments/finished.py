"""The runs that experiments/run.py has finished, and what tells them apart."""

import collections
import pathlib
import sys

from keras_caption.errors import InputError
from keras_caption.formats.runs import read_finished

OBJECTIVES = {"cross-entropy": "", "self-critical": " + SCST"}


def find_runs(folders):
    """The finished runs in folders and below, self-critical ones among them.

    Those that are not finished are reported and skipped; without any run the program
    ends.

    Args:
        folders: Paths.

    Returns:
        dict from the folder of a run to what `read_finished` returns, and the `folder`.
    """
    runs = {}
    for folder in map(pathlib.Path, folders):
        begun = {
            path.parent
            for path in folder.rglob("*.json")
            if path.name in ("history.json", "config.json")
        }
        for path in sorted(begun):
            try:
                run = read_finished(path)
            except InputError as error:
                print(
                    f"{path} is skipped, it is no finished run: {error}",
                    file=sys.stderr,
                )
                continue
            run["dataset"] = dataset_of(run)
            runs[path] = {**run, "folder": path}
        if not begun:
            print(f"There is no run in {folder}.", file=sys.stderr)
    if not runs:
        sys.exit("error: name folders that have finished runs in them.")
    return runs


def dataset_of(about):
    """Name of the dataset that a run was scored on, and of another's it trained on."""
    name = about["dataset"]
    if name == "prepared":  # of what, its folder says
        name += f" from {about['data_dir']}"
    if "trained_on" in about:
        name += f", trained on {dataset_of(about['trained_on'])}"
    return name


def distinctions(runs):
    """Pairs of a run and those of its overrides that not all runs share.

    What is the same for all of one objective, such as a smaller model than the
    dataset's, is the scale that was chosen, and tells no row from another.
    """
    settings = collections.Counter(
        (run["objective"], *item) for run in runs for item in run["overrides"].items()
    )
    counts = collections.Counter(run["objective"] for run in runs)
    for run in runs:
        objective = run["objective"]
        yield (
            run,
            {
                name: value
                for name, value in run["overrides"].items()
                if settings[objective, name, value] < counts[objective]
            },
        )


def label_of(run, overrides):
    """What to call a run that has such overrides, see `distinctions`.

    Runs that differ in their seed only are called the same; every ensemble is called by
    its folder.
    """
    if run["objective"] == "ensemble":
        return f"{run['folder'].name}: {run['model']}"
    label = run["model"] + OBJECTIVES[run["objective"]]
    for name, value in overrides.items():
        label += f", {name.removeprefix('model.')}={value}"
    return label
