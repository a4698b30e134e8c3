"""Archives of finished runs, `docs/results/runs/SETUP/CELL.zip`.

An archive has the settings, scores, scores of single images and history of all runs of
a cell, from which tables and paired differences can be computed again. Paths in the
settings are without their folders. Scores of single images are rounded, to a hundredth
of a point of CIDEr-D; of several references, the mean is kept.
"""

import contextlib
import json
import pathlib
import tempfile
import zipfile
from typing import Any

from experiments.papers.finished import find_runs
from experiments.papers.plan import register
from experiments.papers.sections import SUMMED, numbers
from keras_caption.base.atomic import replacing
from keras_caption.formats.items import read_items
from keras_caption.formats.runs import read_begun
from keras_caption.models.initializers import INITIALIZATION_VERSION

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "results" / "runs"
TRAINING = "training.json"  # how the cell was trained
CONFIG, SCORES = "config.json", "test_scores.json"
ITEMS, HISTORY = "test_items.json", "history.json"
DIGITS = 4  # of the score of an image
PHASES = {"cross-entropy": "", "self-critical": "scst"}  # their folders


def path_of(training, cell):
    """The path of the archive of a cell."""
    return FOLDER / training.setup / f"{cell}.zip"


def is_archived(training, cell):
    """Whether the archive holds all runs of a cell, begun as the code begins them."""
    path = path_of(training, cell)
    if not path.exists():
        return False
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        for run in training.runs_of(cell):
            for phase in training.phases:
                folder = pathlib.PurePosixPath(run, PHASES[phase])
                if str(folder / SCORES) not in names:
                    return False
                config = json.loads(archive.read(str(folder / CONFIG)))
                if config.get("initialization_version") != INITIALIZATION_VERSION:
                    return False
    return True


def archive(path, folders, training: dict[str, Any]) -> None:
    """Writes an archive.

    Args:
        path: Path of the file, which is replaced.
        folders: Paths of the runs of all seeds, finished.
        training: dict, how they were trained.
    """
    with replacing(path) as partial, zipfile.ZipFile(partial, "w") as file:

        def write(name, text):
            # A fixed time: the same runs make the same file.
            entry = zipfile.ZipInfo(str(name))
            file.writestr(entry, text, zipfile.ZIP_DEFLATED, 9)

        write(TRAINING, json.dumps(training, indent=1))
        for folder in map(pathlib.Path, folders):
            for phase in PHASES.values():
                if not (folder / phase / SCORES).exists():
                    continue
                name = pathlib.PurePosixPath(folder.name, phase)
                write(name / CONFIG, json.dumps(_without_folders(folder / phase)))
                write(name / ITEMS, json.dumps(_rounded(folder / phase / ITEMS)))
                for part in (SCORES, HISTORY):
                    if (folder / phase / part).exists():  # ensembles have no history
                        write(name / part, (folder / phase / part).read_text())


def _without_folders(folder):
    """The settings of a run, with the names of files and folders alone."""
    begun = read_begun(folder)
    data = begun["config"]["data"]
    if data.get("data_dir"):
        data["data_dir"] = pathlib.Path(data["data_dir"]).name
    for name in ("start", "members"):
        begun[name] = {
            _without_folder(path): digest
            for path, digest in begun.get(name, {}).items()
        }
    return begun


def _without_folder(path):
    """The path of a saved model from the folder of its run on."""
    *_, folder, phase, name = pathlib.Path(path).parts
    return "/".join(
        (folder, phase, name) if phase in PHASES.values() else (phase, name)
    )


def _rounded(path):
    """The content of a file of items, with one rounded number for each."""
    items = read_items(path)
    ids = [*dict.fromkeys(i for values in items.values() for i in values)]
    rounded = {"ids": ids}
    for name, values in items.items():
        if name not in SUMMED:
            values = {i: round(numbers(name, x)[0], DIGITS) for i, x in values.items()}
        rounded[name] = [values.get(i) for i in ids]
    return rounded


def minutes_of(path):
    """The processor minutes that a cell was trained for."""
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read(TRAINING))["minutes"]


@contextlib.contextmanager
def archived_runs(training):
    """Yields the archived runs that a planned table shows, a list.

    They are as `find_runs` returns them; their folders exist within the block. What
    their set-up imports is registered.
    """
    register(training.setup)
    paths = [path_of(training, cell) for cell in sorted(training.shown)]
    paths = [path for path in paths if path.exists()]
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            with zipfile.ZipFile(path) as file:
                file.extractall(folder)
        yield [*find_runs([folder], needed=False).values()] if paths else []
