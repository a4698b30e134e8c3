"""Commands of finished runs: repeating one needs neither Keras nor a backend."""

import argparse
import hashlib
import json
import pathlib
from collections.abc import Iterable
from typing import Any

import keras_caption
from keras_caption.atomic import replacing
from keras_caption.formats.built_in import find_file

FILE = "command.json"  # in the first folder of a run
FINISHED = "{} is finished: nothing to do"
SCORES = "test_scores.json"  # in each folder of a finished one


def finished_folders(
    options: argparse.Namespace, settings: dict[str, Any]
) -> list[pathlib.Path]:
    """The folders of the run that the same command has finished; empty if none has.

    Args:
        options, settings: What `run_arguments.parse` returns.
    """
    asked = asked_by(options, settings)
    if asked is None or not options.resume:
        return []
    if options.output_dir is None:
        candidates = sorted(pathlib.Path("saved_models").glob(f"*/{FILE}"))
    else:
        candidates = [pathlib.Path(options.output_dir, FILE)]
    for path in candidates:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            folders = [path.parent / name for name in found["folders"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it only saves time
        if found.get("asked") == asked and all((x / SCORES).exists() for x in folders):
            return folders
    return []


def record_finished(
    options: argparse.Namespace,
    settings: dict[str, Any],
    folders: Iterable[pathlib.Path],
) -> None:
    """Records which command has finished the run in some folders, the first one first.

    Args:
        options, settings: What `run_arguments.parse` returns.
        folders: Paths of the phases, each within the first one.
    """
    asked, [first, *others] = asked_by(options, settings), folders
    if asked is None:
        return
    names = [".", *(str(folder.relative_to(first)) for folder in others)]
    with replacing(first / FILE) as partial:
        text = json.dumps({"asked": asked, "folders": names}, indent=1)
        pathlib.Path(partial).write_text(text, encoding="utf-8")


def asked_by(
    options: argparse.Namespace, settings: dict[str, Any]
) -> dict[str, Any] | None:
    """What a command asks for; `None` if other models or code of a user decide too."""
    if options.ensemble or options.start_from or getattr(options, "import"):
        return None
    config = options.config and find_file(options.config).read_bytes()
    return {
        "settings": settings,
        "config": config and hashlib.sha256(config).hexdigest(),
        "version": keras_caption.__version__,
    }
