import contextlib
import dataclasses
import functools
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

from keras_caption.apps.bulk.files import read_file
from keras_caption.apps.serve.lite_predictors import load_lite
from keras_caption.base.errors import InputError
from keras_caption.export.engine_cache import engine_of
from keras_caption.formats.python_files import run_file
from keras_caption.predict import RecordPredictor

register = functools.cache(run_file)  # once: a second run would register twice
HUBS = ("hf", "kaggle")
# Predictors that `checked` has loaded, by job, until a worker in this process takes
# them: the model is not loaded twice.
_loaded: dict[str, RecordPredictor] = {}
FIELDS = {"caption": ("photo",), "translate": ("text",), "answer": ("photo", "text")}


@dataclasses.dataclass(frozen=True)
class Job:
    """A task for records, and its model. Workers receive it pickled.

    Attributes:
        task: str, `"caption"`, `"translate"` or `"answer"`.
        models: tuple of str, saved models; several form an ensemble. They are presets,
            or paths on any of Beam's file systems that every worker can read.
        detector, confidence: As in `keras_caption.objects.load_detector`, for a model
            of objects.
        default_detector: str, detector of a model of objects if `detector` is omitted.
        second_opinion: bool, as in `keras_caption.objects.load_detector`.
        details: bool, as in `keras_caption.predict.RecordPredictor`.
        n_best: int, number of texts of a record, or `None` for the best text only.
        decoding: dict of options of decoding.
        imports: tuple of str, Python files that register parts of models.
        engine: str, what runs the model: `"keras"`, or one of
            `keras_caption.export.engine_cache.engine_of`.
    """

    task: str
    models: tuple[str, ...]
    detector: str | None = None
    confidence: float | None = None
    default_detector: str | None = None
    second_opinion: bool = False
    details: bool = RecordPredictor.details
    n_best: int | None = None
    decoding: dict[str, Any] = dataclasses.field(default_factory=dict)
    imports: tuple[str, ...] = ()
    engine: str = "keras"

    @property
    def fields(self) -> tuple[str, ...]:
        """Fields of a record: `"photo"`, `"text"`, or both."""
        return FIELDS[self.task]

    @contextlib.contextmanager
    def checked(self) -> Iterator[RecordPredictor]:
        """Loads the models for a `with` block, and for the first `load` within it.

        Raises:
            InputError: As in `load`.
        """
        predictor = _loaded[repr(self)] = self.load()
        try:
            yield predictor
        finally:
            _loaded.pop(repr(self), None)

    def load(self) -> RecordPredictor:
        """Loads the models.

        Raises:
            InputError: If a model cannot be loaded or is for another task, or an option
                is wrong.
        """
        if (loaded := _loaded.pop(repr(self), None)) is not None:
            return loaded
        for path in self.imports:
            register(path)
        with tempfile.TemporaryDirectory() as folder:
            predictor = self._load(folder)
        predictor.details = self.details
        predictor.check_options(self.n_best, self.decoding)
        return predictor

    def _load(self, folder):
        """Loads the models, those of other file systems by way of a folder."""
        name = ",".join(self.models)
        models = [local(model, folder) for model in self.models]
        detector = self.detector and local(self.detector, folder)
        if self.engine != "keras":
            models = [engine_of(model, self.engine) for model in models]
        lite = None
        if self.engine == "litert":
            names = detector, self.default_detector
            lite = load_lite(*models, *names, self.confidence, self.second_opinion)
        if lite is None:
            from keras_caption.apps.serve.predictor import Predictor
        predictor = lite or Predictor(models)
        task = task_of(predictor.reads)
        if task != self.task:
            raise InputError(f"{name} is for bulk {task}, not for {self.task}.")
        if lite is None and "photo" in self.fields:
            self._detect(predictor.model, detector, name)
        return predictor

    def _detect(self, model, detector, name):
        """Gives a model of objects its detector."""
        from keras_caption.apps.serve.detection import add_detector

        if model.extractor is None:
            detector = detector or self.default_detector
        if detector:
            second = self.second_opinion
            add_detector(model, detector, self.confidence, name, second_opinion=second)


def task_of(reads: tuple[str, ...]) -> str:
    """The task of a model that reads inputs of these names."""
    if "question" in reads:
        return "answer"
    return "translate" if "source" in reads else "caption"


def local(name: str, folder: str) -> str:
    """A local path of a file. A file on another file system is copied to a folder."""
    scheme, separator, _ = name.partition("://")
    if not separator or scheme in HUBS:
        return name
    copy = pathlib.Path(tempfile.mkdtemp(dir=folder)) / name.rpartition("/")[2]
    copy.write_bytes(read_file(name))
    return str(copy)
