"""What the phases of training, and `keras-caption run`, need to know of a task."""

import abc
import pathlib
from collections.abc import Sized
from typing import Any, ClassVar

import keras

from keras_caption import models
from keras_caption.compilation import uses_xla
from keras_caption.errors import input_errors
from keras_caption.losses import SequenceCrossEntropy
from keras_caption.models.task_model import TaskModel
from keras_caption.training.run_directory import RunDirectory


class Task(abc.ABC):
    """An experiment of a task: its data, its models, and their evaluation.

    A subclass is one kind of experiment, found by the names of its models, and an
    instance one experiment. What it gives is listed here; nothing is assumed of what
    an example is, how examples are batched, or what the evaluation prints. Assumed is:

    - Its models are presets of `keras_caption.models.presets`, and served by
      `keras_caption.serving.export`: captioners, translators or classifiers.
    - The configuration has the group `data` with `dataset`, a name, and the group
      `training` with `epochs`. The phases obey `scheduled_sampling`, `accumulation`,
      `average`, `patience`, `stop_on` and `warmup_epochs` there, if `groups` has them.
    - Models are trained self-critically if there are the groups `self_critical`, a
      `keras_caption.settings.run.SelfCriticalSettings`, and `decoding`.

    Args:
        config: dict, the whole configuration.

    Raises:
        InputError: If there is no such dataset, or its files are wrong.

    Attributes:
        model: Class of its models, `keras_caption.models.Captioner` for instance.
        ensemble: Class of their ensembles, called with a list of paths.
        groups: dict from group of the configuration, other than `model`, to its
            schema, a `TypedDict`, as those of `keras_caption.settings.run`.
        files: dict from file of a finished run to str, what it holds.
        metrics: Names of the scores that tables of runs show.
        monitor: str, the log whose greatest value is the best epoch's.

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
        """Whether XLA compiles steps, so that batches should have few shapes."""
        return uses_xla(self.config["jit_compile"])

    @classmethod
    def presets(cls) -> list[str]:
        """Names of the models of the task."""
        return models.presets(cls.model)

    @staticmethod
    @abc.abstractmethod
    def get_config(name: str) -> dict[str, dict[str, Any]]:
        """The built-in experiment of a model, a dict of groups.

        Args:
            name: str, the model's, one of `presets()`.
        """

    # === Data ===

    @abc.abstractmethod
    def read(self, split: str) -> Any:
        """Examples of a split.

        Args:
            split: str, `"train"`, `"val"` or `"test"`.

        Raises:
            InputError: If they cannot be read.
        """

    @property
    @abc.abstractmethod
    def training_size(self) -> str:
        """The size of the training data, for messages."""

    @abc.abstractmethod
    def build_vocabularies(self) -> dict[str, Sized]:
        """Tokenizers, or lists of answers, by the arguments of a model that take them.

        A resumed model should have the same.
        """

    @abc.abstractmethod
    def steps_per_epoch(self, group: str, replicas: int = 1) -> int:
        """Number of steps of an epoch.

        Args:
            group: str, `"training"` or `"self_critical"`.
            replicas: int, number of replicas that share a batch.

        Raises:
            InputError: If the examples do not make a batch, or the replicas cannot
                share it.
        """

    @abc.abstractmethod
    def train_batches(self, model: TaskModel, group: str, first_epoch: int):
        """Endless batches, a `tf.data.Dataset`.

        Args:
            model: The model that reads them.
            group: str, `"training"` for what `model.fit` takes, or `"self_critical"`
                for what `SelfCritical.fit` takes.
            first_epoch: int, number of epochs done: their batches are not repeated.
        """

    # === Models ===

    def data_arguments(self) -> dict[str, Any]:
        """Arguments of a model that the data decide, beside the vocabularies."""
        return {}

    def create_model(self, vocabularies: dict[str, Sized]) -> TaskModel:
        """A new model of the configuration.

        Args:
            vocabularies: What `build_vocabularies` returned.
        """
        options = dict(self.config["model"])
        of_data = self.data_arguments()
        with input_errors():
            return models.create(
                options.pop("name"), **vocabularies, **of_data, **options
            )

    def load_model(self, path: pathlib.Path | str) -> TaskModel:
        """A saved model, if it reads what the dataset has."""
        model = models.load(path)
        self.check_reads(model)
        return model

    def load_ensemble(self, paths: list[str]) -> Any:
        """An ensemble of saved models, if it reads what the dataset has."""
        model = self.ensemble(paths)
        self.check_reads(model)
        return model

    def check_reads(self, model: Any) -> None:  # noqa: B027 (some read any dataset)
        """Raises `InputError` if a model reads other inputs than the dataset's."""

    # === Training ===

    def make_loss(self) -> keras.losses.Loss:
        """The loss of the first phase: cross-entropy of tokens, unless overridden."""
        smoothing = self.config["training"].get("label_smoothing", 0.0)
        return SequenceCrossEntropy(smoothing)

    def make_optimizer(
        self, group: str, steps_per_epoch: int
    ) -> keras.optimizers.Optimizer:
        """The optimizer of a phase: Adam at a constant rate, unless overridden.

        Args:
            group: str, `"training"` or `"self_critical"`.
            steps_per_epoch: int, number of updates of an epoch.
        """
        return keras.optimizers.Adam(self.config[group]["learning_rate"])

    def make_reward(
        self, model: TaskModel, directory: RunDirectory, resumed: bool
    ) -> Any:
        """The reward of `SelfCritical`; needed where the configuration has its group.

        Args:
            model: The model that is trained.
            directory: `RunDirectory` of the phase, which may record what it needs.
            resumed: bool, whether to read what it recorded.
        """
        raise NotImplementedError(f"{type(self).__name__} has no reward.")

    @abc.abstractmethod
    def validation(self, model: TaskModel) -> keras.callbacks.Callback:
        """The callback that adds `monitor` to the logs of an epoch."""

    # === Evaluation ===

    def check_evaluation(self) -> None:
        """Raises `InputError`, before training, if `evaluate` would lack something."""
        return

    @abc.abstractmethod
    def evaluate(self, model: Any, folder: pathlib.Path) -> dict[str, Any]:
        """Scores the test split, and prints the scores.

        Args:
            model: A trained model, or an ensemble.
            folder: Where outputs and figures go, by the names of `files`.

        Returns:
            dict from metric to score.
        """

    # === Report ===

    def outcome(self, model: Any, folder: pathlib.Path) -> Any:
        """What a run says of its test split, for the report of the run.

        Args:
            model: The run's model, or `None` if it is not at its place.
            folder: `pathlib.Path` of the run, with what `evaluate` wrote.

        Returns:
            `keras_caption.results.Outcome`, or `None`: then the report shows no
            examples.
        """
        return None

    def examples(
        self, model: Any, folder: pathlib.Path, scores: dict[Any, float], keys: Any
    ) -> dict[Any, Any]:
        """Some examples of a run's test split, for its report.

        Args:
            model, folder: Of `outcome`.
            scores: dict from key to float, those of `outcome`.
            keys: Sequence of keys of `scores`.

        Returns:
            dict from key to `keras_caption.results.Example`.
        """
        return {}
