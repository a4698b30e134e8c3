"""Versions of served models: finds, loads and replaces them."""

import dataclasses
import pathlib
import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from keras_caption.apps.serve.batcher import Batcher
from keras_caption.base.errors import InputError
from keras_caption.formats import built_in
from keras_caption.formats.faults import reason_of

SAVED_MODEL = "saved_model.pb"
SAVED = (SAVED_MODEL, "best.keras", "model.weights.h5")  # of an export, run or preset


@dataclasses.dataclass
class Version:
    """A loaded version of a model.

    Attributes:
        number: int.
        model: `Predictor` or `ExportedPredictor`.
        batcher: `Batcher`, which runs the model.
    """

    number: int
    model: Any
    batcher: Batcher


@dataclasses.dataclass(frozen=True)
class Status:
    """The status of a version, in TensorFlow Serving's terms.

    Attributes:
        state: str: `LOADING`, `AVAILABLE`, `UNLOADING` or `END`.
        code, message: str, code and message of the error that ended the version, or
            `OK` and "".
    """

    state: str
    code: str = "OK"
    message: str = ""


class ServedModel:
    """A model in one or several versions.

    The newest version that can be loaded is served, and all versions with a label. A
    new version is loaded and warmed up while the old ones answer. It then replaces
    them, and they finish the requests that they have accepted. A version that cannot be
    loaded is tried again when its files change.

    Args:
        name: str.
        path: Path of a saved model; or of a folder of saved models in folders with
            numbers as names.
        load: Function of a path that returns a `Version.model`, warmed up.
        make_batcher: Function of a model that returns its `Batcher`.
        labels: dict from label, str, to the number of a version.
        log: Function of an event, a str, and keywords that describe it.

    Raises:
        InputError: If there is nothing at `path`.
    """

    def __init__(
        self,
        name: str,
        path: str,
        load: Callable[[str], Any],
        make_batcher: Callable[[Any], Batcher],
        labels: dict[str, int] | None = None,
        log: Callable[..., None] = lambda event, **facts: None,
    ):
        self.name = name
        self.path = path
        self.load = load
        self.make_batcher = make_batcher
        self.labels = labels or {}
        self.log = log
        self.versions: dict[int, Version] = {}
        self.statuses: dict[int, Status] = {}
        # From version to the state of files that cannot be loaded.
        self._failed: dict[int, Any] = {}
        self._lock = threading.Lock()  # of `update`
        self.is_closed = False
        is_local = "://" not in path and path not in built_in.models()
        if is_local and not pathlib.Path(path).exists():
            raise InputError(
                f"{path} cannot be served: There is no saved model {path}."
            )
        if not self._paths():
            raise InputError(f"There is no saved model in {path}.")

    def find(self, number: int | None = None, label: str | None = None) -> Version:
        """The version with a number or a label; defaults to the newest.

        Raises:
            KeyError: If there is no such version.
        """
        if label is not None:
            number = self.labels[label]
        versions = self.versions  # another thread may replace the dict meanwhile
        if number is None:
            number = max(versions, default=None)
        if number is None:
            raise KeyError(self.name)
        return versions[number]

    def update(self) -> None:
        """Looks for versions, loads new ones, and removes replaced ones."""
        with self._lock:
            paths = self._paths()
            kept = {x for x in self.labels.values() if x in paths}
            for number in sorted(kept - {*self.versions}):
                self._try(number, paths[number])
            newest = next(
                (
                    number
                    for number in sorted(paths, reverse=True)
                    if number in self.versions or self._try(number, paths[number])
                ),
                None,
            )
            if newest is None:  # no version could replace those that answer
                return
            for number in {*self.versions} - kept - {newest}:
                self._remove(number)

    def close(self) -> None:
        """Finishes accepted requests, and answers no more.

        A version that is still being loaded is dropped.
        """
        self.is_closed = True
        for number in list(self.versions):
            self._remove(number)

    def _paths(self):
        """Paths of the existing versions, by number."""
        path = pathlib.Path(self.path)
        if "://" in self.path or not path.is_dir():
            return {1: self.path}
        if (path / SAVED_MODEL).exists() and is_version(path.name):
            return {int(path.name): self.path}
        numbered = {}
        # The shortest of several names of one number, such as 1 and 0001, counts.
        for x in sorted(path.iterdir(), key=lambda x: (len(x.name), x.name)):
            if is_version(x.name) and x.is_dir():
                numbered.setdefault(int(x.name), str(x))
        if numbered:
            return numbered
        is_model = any((path / name).exists() for name in SAVED)
        return {1: self.path} if is_model else {}

    def _try(self, number, path):
        """Loads a version, and returns whether it can answer."""
        state = state_of(path)
        if self._failed.get(number) == state:
            return False
        self.statuses[number] = Status("LOADING")
        self.log("version_loading", model=self.name, version=number, path=str(path))
        begin = time.monotonic()
        try:
            model = self.load(path)
        except Exception as error:  # damaged files make Keras raise any class of error
            reason = reason_of(error)
            self._failed[number] = state
            self.statuses[number] = Status("END", "INVALID_ARGUMENT", reason)
            self.log("version_failed", model=self.name, version=number, reason=reason)
            return False
        if self.is_closed:
            return False
        version = Version(number, model, self.make_batcher(model))
        self.versions = {**self.versions, number: version}
        self.statuses[number] = Status("AVAILABLE")
        seconds = round(time.monotonic() - begin, 1)
        self.log("version_available", model=self.name, version=number, seconds=seconds)
        return True

    def _remove(self, number):
        version = self.versions.get(number)
        if version is None:  # removed by `close`
            return
        self.versions = {n: x for n, x in self.versions.items() if n != number}
        self.statuses[number] = Status("UNLOADING")
        version.batcher.close()
        self.statuses[number] = Status("END")
        self.log("version_removed", model=self.name, version=number)


def is_version(name: str) -> bool:
    """Whether the name of a folder is a number of a version, below 2^63."""
    return bool(re.fullmatch("[0-9]{1,99}", name)) and int(name) < 2**63


def state_of(path: str) -> Any:
    """The sizes and times of a saved model's files, to notice changes."""
    root = pathlib.Path(path)
    files: Iterable[pathlib.Path] = (
        [root] if root.is_file() else sorted(root.rglob("*"))
    )
    states = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:  # removed meanwhile
            continue
        states.append((str(file), stat.st_size, stat.st_mtime_ns))
    return states
