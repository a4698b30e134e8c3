"""The interface of tasks for the phases of training and for `keras-caption run`."""

import abc
import pathlib
from collections.abc import Mapping, Sized
from typing import Any, ClassVar

import keras

from keras_caption import models
from keras_caption.base.compilation import uses_xla
from keras_caption.base.errors import input_errors
from keras_caption.base.registration import Registry
from keras_caption.losses import SequenceCrossEntropy
from keras_caption.models.task_model import TaskModel
from keras_caption.training.run_directory import RunDirectory

KEPT_IN_MEMORY = 2 * 2**30  # greatest size of training data in memory, in bytes
EXAMPLES_AT_ONCE = 50  # in a batch of the evaluation
# Files that runs of all tasks have: the first and the last of `Task.files`.
MODEL_FILES = {
    "best.keras": "the model, for keras.models.load_model",
    "1": "the model as a SavedModel, for TensorFlow Serving",
    "last.keras": "the last epoch's model and optimizer, for --resume",
}
RECORD_FILES = {
    "report.html": "a report of the run, for a browser",
    "README.md": "the model card, for people and for hubs",
    "config.json": "the configuration of the run",
}
# What shows and scores the test split of a task's runs, modules by name.
REPORTS = Registry("reports")


class Task(abc.ABC):
    """An experiment of a task: its data, its models, and their evaluation.

    A subclass is one kind of experiment, which a command finds by the name of a model;
    an instance is one experiment. A task may define freely what an example is, how
    examples are batched, and what the evaluation prints. The phases assume only this:

    - The models are presets of `keras_caption.models.presets`, and
      `keras_caption.serving.export` can serve them: captioners, translators or
      classifiers.
    - The configuration has the group `data` with `dataset`, a name, and the group
      `training` with `epochs`. The phases obey `scheduled_sampling`, `accumulation`,
      `average`, `patience`, `stop_on` and `warmup_epochs` there, if `groups` has them.
    - Models can be trained self-critically if the configuration has the groups
      `self_critical`, a `keras_caption.settings.run.SelfCriticalSettings`, and
      `decoding`.

    Args:
        config: dict, the whole configuration.

    Raises:
        InputError: If the dataset is unknown, or its files are damaged.

    Attributes:
        model: Class of the models, such as `keras_caption.models.Captioner`.
        ensemble: Class of ensembles of the models, called with a list of paths.
        groups: dict from group of the configuration, except `model`, to its schema, a
            `TypedDict` such as those of `keras_caption.settings.run`.
        files: dict from file of a finished run to str, a description of its content.
        metrics: Names of the scores that tables of runs show.
        monitor: str, the log whose greatest value marks the best epoch.

    Example:

    ```python
    keras_caption.tasks.TASKS["counting"] = Counting  # a subclass
    ```
    """

    model: ClassVar[type[TaskModel]]
    ensemble: ClassVar[type] = models.Ensemble
    groups: ClassVar[dict[str, type]]
    files: ClassVar[dict[str, str]]
    metrics: ClassVar[tuple[str, ...]]
    monitor: ClassVar[str]

    def __init__(self, config: dict[str, Any]):
        self.config = config
        self.data = config["data"]

    @property
    def few_shapes(self) -> bool:
        """Returns whether batches should have few shapes, since XLA compiles steps."""
        return uses_xla(self.config["jit_compile"])

    @classmethod
    def presets(cls) -> list[str]:
        """Returns the names of the models of the task."""
        return models.presets(cls.model)

    @staticmethod
    @abc.abstractmethod
    def get_config(name: str) -> dict[str, dict[str, Any]]:
        """Returns the built-in experiment of a model, a dict of groups.

        Args:
            name: str, name of the model, one of `presets()`.
        """

    # === Data ===

    @abc.abstractmethod
    def read(self, split: str) -> Any:
        """Reads the examples of a split.

        Args:
            split: str, `"train"`, `"val"` or `"test"`.

        Raises:
            InputError: If the examples cannot be read.
        """

    @property
    @abc.abstractmethod
    def training_size(self) -> str:
        """Returns the size of the training data, for messages."""

    @abc.abstractmethod
    def build_vocabularies(self) -> Mapping[str, Sized]:
        """Builds tokenizers or lists of answers, by argument of the model.

        A resumed model must have the same ones.
        """

    @abc.abstractmethod
    def steps_per_epoch(self, group: str, replicas: int = 1) -> int:
        """Returns the number of steps of an epoch.

        Args:
            group: str, `"training"` or `"self_critical"`.
            replicas: int, number of replicas that share a batch.

        Raises:
            InputError: If there are fewer examples than a batch has, or the replicas
                cannot share a batch evenly.
        """

    @abc.abstractmethod
    def train_batches(self, model: TaskModel, group: str, first_epoch: int):
        """Makes endless batches, a `tf.data.Dataset`.

        Args:
            model: The model to train.
            group: str, `"training"` for batches of `model.fit`, or `"self_critical"`
                for batches of `SelfCritical.fit`.
            first_epoch: int, number of epochs done; the batches start after them.
        """

    # === Models ===

    def data_arguments(self) -> dict[str, Any]:
        """Returns arguments of a model, beside vocabularies, that the data decide."""
        return {}

    def create_model(self, vocabularies: Mapping[str, Any]) -> TaskModel:
        """Creates the model of the configuration.

        Args:
            vocabularies: dict, as `build_vocabularies` returns it.
        """
        options = dict(self.config["model"])
        sizes = self.data_arguments()
        with input_errors():
            return models.create(
                options.pop("name"), **vocabularies, **sizes, **options
            )

    def load_model(self, path: pathlib.Path | str) -> TaskModel:
        """Loads a saved model; checks that it reads the inputs of the dataset."""
        model = models.load(path)
        self.check_reads(model)
        return model

    def load_ensemble(self, paths: list[str]) -> Any:
        """Loads an ensemble; checks that it reads the inputs of the dataset."""
        model = self.ensemble(paths)
        self.check_reads(model)
        return model

    def check_reads(self, model: Any) -> None:  # noqa: B027 (some read any dataset)
        """Raises `InputError` if a model reads inputs that the dataset lacks."""

    # === Training ===

    def make_loss(self) -> keras.losses.Loss:
        """Makes the loss of the first phase: cross-entropy of tokens, by default."""
        smoothing = self.config["training"].get("label_smoothing", 0.0)
        return SequenceCrossEntropy(smoothing)

    def make_optimizer(
        self, group: str, steps_per_epoch: int
    ) -> keras.optimizers.Optimizer:
        """Makes the optimizer of a phase: Adam at a constant rate, by default.

        Args:
            group: str, `"training"` or `"self_critical"`.
            steps_per_epoch: int, number of updates of an epoch.
        """
        return keras.optimizers.Adam(self.config[group]["learning_rate"])

    def make_reward(
        self, model: TaskModel, directory: RunDirectory, resumed: bool
    ) -> Any:
        """Makes the reward of `SelfCritical`, if the configuration has its group.

        Args:
            model: The model to train.
            directory: `RunDirectory` of the phase, in which a reward may keep files.
            resumed: bool, whether to read those files instead of writing them.
        """
        raise NotImplementedError(f"{type(self).__name__} has no reward.")

    @abc.abstractmethod
    def validation(self, model: TaskModel) -> keras.callbacks.Callback:
        """Makes the callback that adds `monitor` to the logs of an epoch."""

    def summaries(self, model: TaskModel) -> dict[str, Any]:
        """Makes summaries for TensorBoard, beside the curves, at the end of an epoch.

        Args:
            model: The model.

        Returns:
            dict from name to str, Markdown, or to uint8 `(height, width, channels)`, an
            image. Empty by default.
        """
        return {}

    # === Evaluation ===

    def check_evaluation(self) -> None:
        """Raises `InputError`, before training, if `evaluate` could not run."""
        return

    @abc.abstractmethod
    def evaluate(self, model: Any, folder: pathlib.Path) -> dict[str, Any]:
        """Scores the test split, and prints the scores.

        Args:
            model: A trained model, or an ensemble.
            folder: `pathlib.Path` of the run, to write the `files` to.

        Returns:
            dict from metric to score.
        """

    # === Report ===

    def outcome(self, model: Any, folder: pathlib.Path) -> Any:
        """Reads the outputs of a run on the test split, for its report.

        Args:
            model: The model of the run, or `None` if its file is missing.
            folder: `pathlib.Path` of the run, with the files that `evaluate` wrote.

        Returns:
            `keras_caption.results.Outcome`, or `None` for a report without examples.
        """
        return None

    def examples(
        self, model: Any, folder: pathlib.Path, scores: dict[Any, float], keys: Any
    ) -> dict[Any, Any]:
        """Returns some examples of the test split, for the report of a run.

        Args:
            model, folder: See `outcome`.
            scores: dict from key to float, the scores of `outcome`.
            keys: Sequence of keys of `scores`, the examples to return.

        Returns:
            dict from key to `keras_caption.results.Example`.
        """
        return {}
