"""The phases of an experiment: cross-entropy, then self-critical training.

A task gives them data and models, see `keras_caption.tasks.captioning.Task`; a run's
directory says what is recorded and where to resume.
"""

import contextlib
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import keras

from keras_caption.errors import InputError
from keras_caption.losses import CaptionCrossEntropy
from keras_caption.rewards import CiderD, DocumentFrequencies
from keras_caption.training.callbacks import (
    EpochSeeds,
    HalveOnPlateau,
    StopIfNotFinite,
    TensorBoardLogs,
    captioner_of,
)
from keras_caption.training.run_directory import RunDirectory
from keras_caption.training.scheduled_sampling import ScheduledSamplingTrainer
from keras_caption.training.schedules import ScheduledSampling, WarmupStepDecay
from keras_caption.training.self_critical import SelfCritical
from keras_caption.training.strategies import wait_for_all

GROUPS = {"cross-entropy": "training", "self-critical": "self_critical"}


def check_data(task: Any, objectives: Iterable[str], strategy: Any) -> None:
    """Raises `InputError` if a phase could not read its data.

    Args:
        task: The task, such as `keras_caption.tasks.captioning.Task`.
        objectives: Objectives of the phases.
        strategy: Distribution strategy.
    """
    trained = [GROUPS[objective] for objective in objectives if objective in GROUPS]
    for split in ("train", "val", "test") if trained else ("test",):
        task.read(split)
    for group in trained:
        count_steps(task, task.config[group]["batch_size"], strategy)


def count_steps(task: Any, batch_size: int, strategy: Any) -> int:
    """Number of steps of an epoch."""
    replicas, examples = strategy.num_replicas_in_sync, len(task.read("train"))
    if batch_size % replicas:
        raise InputError(
            f"A batch of {batch_size} images cannot be shared evenly by {replicas} "
            "replicas."
        )
    if examples < batch_size:
        raise InputError(
            f"A batch of {batch_size} images is more than the {examples} there are to "
            "train on."
        )
    return examples // batch_size


def train_cross_entropy(task: Any, directory: RunDirectory, strategy: Any) -> None:
    """Trains a new model with cross-entropy, or resumes that.

    Args:
        task: The task.
        directory: `RunDirectory` of the phase.
        strategy: Distribution strategy.

    Raises:
        InputError: If the run in the directory has another vocabulary.
    """
    values = task.config["training"]
    steps_per_epoch = count_steps(task, values["batch_size"], strategy)
    vocabulary = task.build_vocabulary()
    with strategy.scope():
        model, epoch = directory.load()
        if model is None:
            keras.utils.set_random_seed(task.config["seed"])
            model = task.create_model(vocabulary)
            model.compile(
                optimizer=make_optimizer(schedule_of(values, steps_per_epoch), values),
                loss=CaptionCrossEntropy(values["label_smoothing"]),
                jit_compile=False,  # XLA would compile anew for each shape of a batch
            )
        elif model.vocabulary != vocabulary:
            raise InputError(
                f"{directory.folder / 'last.keras'} has another vocabulary "
                f"({len(model.vocabulary)} words) than the training captions "
                f"({len(vocabulary)} words)."
            )
        trainer = model
        if values["scheduled_sampling"]:
            schedule = ScheduledSampling(steps_per_epoch, values["scheduled_sampling"])
            trainer = ScheduledSamplingTrainer(model, schedule)
    print(
        f"{model.name}: {count_parameters(model):,} parameters, "
        f"{len(vocabulary):,} words, {len(task.read('train')):,} training images"
    )
    fit(task, directory, strategy, trainer, epoch)


def train_self_critically(
    task: Any, directory: RunDirectory, strategy: Any, start: Any
) -> None:
    """Trains a saved captioner self-critically, or resumes that.

    Args:
        task: The task.
        directory: `RunDirectory` of the phase.
        strategy: Distribution strategy.
        start: Path of the saved captioner.
    """
    config = task.config
    values = config["self_critical"]
    counted = directory.folder / "document_frequencies.npz"
    with strategy.scope():
        model, epoch = directory.load()
        if model is None:
            model = task.load_model(start)
            rate = values["learning_rate"]
            if rate is None:
                steps = count_steps(task, values["batch_size"], strategy)
                epochs = config["training"]["epochs"]
                rate = schedule_of(config["training"], steps, epochs)
            optimizer = make_optimizer(rate, values)
            references = task.reference_tokens(model.vocabulary)
            frequencies = DocumentFrequencies.count(references)
            if directory.is_chief:
                frequencies.save(counted, model.vocabulary)
        else:
            optimizer = model.optimizer
            frequencies = DocumentFrequencies.load(counted, model.vocabulary)
        with input_errors():
            trainer = SelfCritical(
                model,
                CiderD(frequencies),
                values["baseline"],
                values["samples"],
                values["temperature"],
                values["cross_entropy"],
                max_length=config["decoding"]["max_length"],
                seed=config["seed"],
            )
        trainer.compile(optimizer, jit_compile=False)
    images = len(task.read("train"))
    print(f"\n{model.name}: self-critical training, {images:,} training images")
    fit(task, directory, strategy, trainer, epoch)


def fit(
    task: Any, directory: RunDirectory, strategy: Any, trainer: Any, epoch: int
) -> None:
    """Trains from an epoch to the last one, validating after each.

    Args:
        task: The task.
        directory: `RunDirectory` of the phase.
        strategy: Distribution strategy.
        trainer: A captioner, or what trains one.
        epoch: int, number of epochs done.
    """
    seed, checkpoint = task.config["seed"], directory.checkpoint
    values = task.config[GROUPS[directory.about["objective"]]]
    if epoch > values["epochs"]:
        raise InputError(
            f"The run in {directory.folder} has done {epoch} epochs already, more "
            f"than {values['epochs']}."
        )
    if epoch < values["epochs"]:
        directory.begin()
    model = captioner_of(trainer)
    callbacks = [StopIfNotFinite(), EpochSeeds(seed), task.validation(model)]
    if values.get("halved_after"):
        callbacks.append(
            HalveOnPlateau(
                values["learning_rate"], values["halved_after"], checkpoint.history
            )
        )
    if directory.is_chief:
        callbacks += [TensorBoardLogs(directory.folder / "logs"), checkpoint]
    trainer.fit(
        task.train_batches(model, values["batch_size"], epoch),
        initial_epoch=epoch,
        epochs=values["epochs"],
        steps_per_epoch=count_steps(task, values["batch_size"], strategy),
        shuffle=False,  # the batches are
        verbose=1 if sys.stdout.isatty() else 2,
        callbacks=callbacks,
    )
    wait_for_all(strategy)


def schedule_of(
    values: dict[str, Any], steps_per_epoch: int, first_epoch: int = 0
) -> WarmupStepDecay:
    """The learning rate of cross-entropy, also of a phase after so many epochs."""
    names = ("learning_rate", "warmup_epochs", "decay_after", "decay_every")
    return WarmupStepDecay(
        steps_per_epoch,
        **{name: values[name] for name in (*names, "decay_rate")},
        first_epoch=first_epoch,
    )


def make_optimizer(rate: Any, values: dict[str, Any]) -> keras.optimizers.Optimizer:
    return keras.optimizers.Adam(rate, clipvalue=values["clip_value"] or None)


def count_parameters(model: Any) -> int:
    return sum(math.prod(v.shape) for v in model.trainable_variables)


@contextlib.contextmanager
def input_errors() -> Iterator[None]:
    """Raises as `InputError` what Keras rejects of the user's values."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
