"""Commands of finished runs: repeating one needs neither Keras nor a backend."""

import argparse
import contextlib
import hashlib
import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import keras_caption
from keras_caption.base.atomic import exclusive, replacing
from keras_caption.formats.built_in import find_file

FILE = "command.json"  # in the first folder of a run
FINISHED = "{} is finished: nothing to do"
WRITTEN = ("config.json", "test_scores.json")  # in each folder, at the end of its phase


def finished_folders(
    options: argparse.Namespace, settings: dict[str, Any]
) -> list[pathlib.Path]:
    """The folders of the run that the same command has finished; empty if none has.

    Args:
        options, settings: What `run_arguments.parse` returns.

    Raises:
        InputError: If another process writes to one of them.
    """
    if not options.resume or (asked := asked_by(options, settings)) is None:
        return []
    if options.output_dir is None:
        candidates = sorted(pathlib.Path("saved_models").glob(f"*/{FILE}"))
    else:
        candidates = [pathlib.Path(options.output_dir, FILE)]
    for path in candidates:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            folders = [path.parent / name for name in found["folders"]]
            is_same = found == record_of(asked, folders)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it only saves time
        if is_same:
            with contextlib.ExitStack() as stack:
                for folder in folders:
                    stack.enter_context(exclusive(folder))
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
    asked, folders = asked_by(options, settings), [*folders]
    if asked is None:
        return
    with replacing(folders[0] / FILE) as partial:
        text = json.dumps(record_of(asked, folders), indent=1)
        pathlib.Path(partial).write_text(text, encoding="utf-8")


def record_of(asked: dict[str, Any], folders: Sequence[pathlib.Path]) -> dict[str, Any]:
    """What is recorded of a finished run: its command, and the files that say so."""
    names = [str(folder.relative_to(folders[0])) for folder in folders]
    digests = [digest((x / name).read_bytes()) for x in folders for name in WRITTEN]
    return {"asked": asked, "folders": names, "digests": digests}


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def asked_by(
    options: argparse.Namespace, settings: dict[str, Any]
) -> dict[str, Any] | None:
    """What a command asks for; `None` if other models or code of a user decide too."""
    if options.ensemble or options.start_from or getattr(options, "import"):
        return None
    config = options.config and pathlib.Path(find_file(options.config)).read_bytes()
    return {
        "settings": settings,
        "config": config and digest(config),
        "version": keras_caption.__version__,
    }
