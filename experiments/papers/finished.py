"""Finished runs, and what tells them apart."""

import collections
import pathlib
import sys

from keras_caption import models, tasks
from keras_caption.base.errors import InputError
from keras_caption.formats import exports
from keras_caption.formats.runs import read_finished
from keras_caption.settings.run import RUN
from keras_caption.training.run_directory import settings

OBJECTIVES = {"cross-entropy": "", "self-critical": " + SCST"}
FOLDERS = ("prepared", "parallel", "vqa")  # datasets that are named by their folder
# What text is translated: for each, another scale may have been chosen.
TEXT = ("data.source", "data.target", "data.tokenizer")


def find_runs(folders, needed=True):
    """The finished runs in folders and below, self-critical ones among them.

    Those that are not finished, or of an unknown model, are reported and skipped;
    without any run the program ends, if one is needed.

    Args:
        folders: Paths.
        needed: bool, whether a run is needed.

    Returns:
        dict from the folder of a run to what `read_finished` returns, its `folder`,
        and `dataset`, the name of the dataset that it was scored on.
    """
    runs = {}
    for folder in map(pathlib.Path, folders):
        begun = {
            path.parent
            for path in folder.rglob("*.json")
            if path.name in ("history.json", "config.json")
            and not path.match(exports.CONFIG)
        }
        for path in sorted(begun):
            try:
                run = read_finished(path)
                tasks.of_run(run)
            except InputError as error:
                print(f"{path} is skipped: {error}", file=sys.stderr)
                continue
            dataset = dataset_of(run["config"]["data"], run.get("trained_on"))
            runs[path] = {**run, "folder": path, "dataset": dataset}
        if not begun:
            print(f"There is no run in {folder}.", file=sys.stderr)
    if needed and not runs:
        sys.exit("error: name folders that have finished runs in them.")
    return runs


def dataset_of(data, trained_on=None):
    """Name of the dataset that a run was scored on, and of another's it trained on."""
    name = data["dataset"]
    if name in FOLDERS:
        name += f" from {data['data_dir']}"
    if trained_on:
        name += f", trained on {dataset_of(trained_on)}"
    return name


def distinctions(runs):
    """Pairs of a run and those of its settings that not all runs share.

    A setting that has the same value in all runs of one objective, and of one text,
    that have it, such as a smaller model than the built-in experiment's, is the scale
    that was chosen, and tells no row from another. Of the others, those count that
    differ from the built-in experiment, so that any two runs that differ in more than
    their seed have other distinctions.
    """
    runs = [(run, built_in(run), comparable(run)) for run in runs]
    counts, shared = collections.Counter(), collections.Counter()
    for run, _, compared in runs:
        for name, value in compared.items():
            group = group_of(run, compared, name)
            counts[group, name] += 1
            shared[group, name, value] += 1
    for run, usual, compared in runs:
        changed = {}
        for name, value in compared.items():
            group = group_of(run, compared, name)
            is_shared = shared[group, name, value] == counts[group, name]
            if not is_shared and (name not in usual or usual[name] != value):
                changed[name] = value
        yield run, changed


def group_of(run, compared, name):
    """The runs among which a setting may be the scale that was chosen."""
    text = () if name in TEXT else tuple(compared.get(name) for name in TEXT)
    return run["objective"], *text


def comparable(run):
    """The settings of a run that rows differ in, a flat dict."""
    if run["objective"] == "ensemble":
        return {}  # each has a row of its own
    skipped = {"objective", "start", "members", "seed", "model.name", "data.dataset"}
    if run["config"]["data"]["dataset"] in FOLDERS:
        skipped.add("data.data_dir")  # in the dataset's name
    return {name: x for name, x in settings(run).items() if name not in skipped}


def built_in(run):
    """The settings of the built-in experiment of a run's model, a flat dict."""
    if "model" not in run["config"]:
        return {}  # an ensemble
    name, task = run["config"]["model"]["name"], tasks.of_run(run)
    config = RUN | task.get_config(name)
    model = models.arguments(name)
    overrides = {key: x for key, x in config["model"].items() if key in model}
    config["model"] = {"name": name, **model, **overrides}
    if "decoding" in config:
        config["decoding"] = {**models.decoding(name), **config["decoding"]}
    return settings({"objective": run["objective"], "config": config})


def label_of(run, changed):
    """What to call a run that has such distinctions.

    Runs that differ in their seed only are called the same; every ensemble is called by
    its folder.
    """
    if run["objective"] == "ensemble":
        return f"{run['folder'].name}: {run['model']}"
    label = run["model"] + OBJECTIVES[run["objective"]]
    for name, value in changed.items():
        label += f", {name.removeprefix('model.')}={value}"
    return label
