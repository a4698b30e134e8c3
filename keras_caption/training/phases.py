"""The phases of an experiment: cross-entropy, then self-critical training if any.

A `keras_caption.training.Task` supplies data and models; a `RunDirectory` records the
phase, and knows where to resume it.
"""

import math
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

import keras

from keras_caption.base.errors import InputError, input_errors
from keras_caption.decoding import Decoding
from keras_caption.formats.runs import read_begun
from keras_caption.text import Tokenizer, Vocabulary
from keras_caption.text.tokenizer import have_same_ids
from keras_caption.training.accumulation import AccumulatingTrainer
from keras_caption.training.averaged_validation import AveragedValidation
from keras_caption.training.callbacks import (
    EpochProgress,
    EpochSeeds,
    HalveOnPlateau,
    StopIfNotFinite,
    TensorBoardLogs,
    model_of,
    steps_done,
)
from keras_caption.training.early_stopping import StopAtStep, StopEarly, has_stalled
from keras_caption.training.run_directory import RunDirectory
from keras_caption.training.scheduled_sampling import ScheduledSamplingTrainer
from keras_caption.training.schedules import ScheduledSampling, check_warmup
from keras_caption.training.self_critical import SelfCritical
from keras_caption.training.self_critical_advice import SelfCriticalAdvice
from keras_caption.training.strategies import wait_for_all
from keras_caption.training.task import Task

# Tokenizers that a model trained further keeps, even if its new data have other words.
KEPT = ("vocabulary", "question")
SHOWN = 8  # unknown words in a message
# Copies of the weights on disk at most: the last model with Adam's two moments, and the
# best model, each twice while it is replaced; and the export.
COPIES = 2 * 3 + 2 + 1
GROUP_OF = {"cross-entropy": "training", "self-critical": "self_critical"}


def check_data(
    task: Task, objectives: Iterable[str], strategy: Any, shortened: bool = False
) -> None:
    """Raises `InputError` if a phase could not read its data, or not train on them.

    Args:
        task: The task.
        objectives: Objectives of the phases.
        strategy: Distribution strategy.
        shortened: bool, see `check_warmup`.
    """
    trained = [GROUP_OF[objective] for objective in objectives if objective in GROUP_OF]
    for split in ("train", "val", "test") if trained else ("test",):
        task.read(split)
    for group in trained:
        steps = task.steps_per_epoch(group, strategy.num_replicas_in_sync)
        check_warmup(task.config[group], steps, group, shortened)


def train_cross_entropy(
    task: Task, directory: RunDirectory, strategy: Any, start: Any = None
) -> None:
    """Trains a model with cross-entropy, or resumes its training.

    Args:
        task: The task.
        directory: `RunDirectory` of the phase.
        strategy: Distribution strategy.
        start: Path of a saved model to start from, which keeps its vocabulary. Defaults
            to `None`, a new model.

    Raises:
        InputError: If the vocabulary of the run in the directory, or the tokenizers or
            answers of the saved model, differ from those of the training data.
    """
    values = task.config["training"]
    steps = task.steps_per_epoch("training", strategy.num_replicas_in_sync)
    vocabularies = task.build_vocabularies()
    with strategy.scope():
        model, epoch = directory.load()
        if model is None:
            # Right before the weights are created: nothing before it changes them.
            keras.utils.set_random_seed(task.config["seed"])
            if start is None:
                model = task.create_model(vocabularies)
            else:
                model = task.load_model(start)
            model.compile(
                optimizer=task.make_optimizer("training", steps),
                loss=task.make_loss(),
                jit_compile=task.config["jit_compile"],
            )
        set_decoding(task, model)
        if start is not None:
            kept = kept_vocabularies(model, vocabularies)
            vocabularies = {**vocabularies, **kept}
        for name, vocabulary in vocabularies.items():
            if not have_same_ids(getattr(model, name), vocabulary):
                raise InputError(
                    f"{start or directory.folder / 'last.keras'}: its {name} "
                    f"({len(getattr(model, name)):,}) and the training data's "
                    f"({len(vocabulary):,}) differ."
                )
        trainer = model
        if values.get("scheduled_sampling"):
            schedule = ScheduledSampling(steps, values["scheduled_sampling"])
            trainer = ScheduledSamplingTrainer(model, schedule)
        elif values.get("accumulation", 1) > 1:
            trainer = AccumulatingTrainer(model)
    sizes = [
        f"{name} of {len(x):,} tokens"
        if isinstance(x, Tokenizer)
        else f"{len(x):,} {name}"
        for name, x in vocabularies.items()
    ]
    print(
        f"{model.name}: {count_parameters(model):,} parameters, {', '.join(sizes)}, "
        f"{task.training_size}"
    )
    check_space(directory, model)
    fit(task, directory, strategy, trainer, epoch)


def kept_vocabularies(
    model: Any, vocabularies: Mapping[str, Any]
) -> dict[str, Vocabulary]:
    """Returns the vocabularies that a saved model keeps when trained on new data.

    Prints how many words of the data are unknown to the model.

    Args:
        model: The saved model.
        vocabularies: dict from attribute of the model to the vocabulary of the data.
    """
    kept = {name: getattr(model, name) for name in KEPT if name in vocabularies}
    for name, vocabulary in kept.items():
        words, known = vocabularies[name].words, {*vocabulary.words}
        unknown = [word for word in words if word not in known]
        if unknown:
            print(
                f"{len(unknown):,} of {len(words):,} words of the training data are "
                f"not in the {name} of the model, which it keeps: "
                f"{', '.join(unknown[:SHOWN])}{', ...' * (len(unknown) > SHOWN)}"
            )
    return kept


def train_self_critically(
    task: Task, directory: RunDirectory, strategy: Any, start: Any
) -> None:
    """Trains a saved model self-critically by its task's reward, or resumes this.

    Args:
        task: The task.
        directory: `RunDirectory` of the phase.
        strategy: Distribution strategy.
        start: Path of the saved model.
    """
    with strategy.scope():
        model, epoch = directory.load()
        resumed = model is not None
        if resumed:
            optimizer = model.optimizer
        else:
            model = task.load_model(start)
            steps = task.steps_per_epoch("self_critical", strategy.num_replicas_in_sync)
            optimizer = task.make_optimizer("self_critical", steps)
        set_decoding(task, model)
        reward = task.make_reward(model, directory, resumed)
        trainer = self_critical_trainer(task, model, reward)
        trainer.compile(optimizer, jit_compile=task.config["jit_compile"])
    print(f"\n{model.name}: self-critical training, {task.training_size}")
    check_space(directory, model)
    fit(task, directory, strategy, trainer, epoch)


def self_critical_trainer(task: Task, model: Any, reward: Any) -> SelfCritical:
    """Makes the trainer of self-critical training from the configuration."""
    values = task.config["self_critical"]
    with input_errors():
        return SelfCritical(
            model,
            reward,
            values["baseline"],
            values["samples"],
            values["temperature"],
            values["cross_entropy"],
            max_length=task.config["decoding"]["max_length"],
            seed=task.config["seed"],
        )


def fit(
    task: Task, directory: RunDirectory, strategy: Any, trainer: Any, epoch: int
) -> None:
    """Trains from an epoch to the last one, validating after each.

    Args:
        task: The task.
        directory: `RunDirectory` of the phase.
        strategy: Distribution strategy.
        trainer: A model, or a trainer of one, such as `SelfCritical`.
        epoch: int, number of epochs done.
    """
    seed, checkpoint = task.config["seed"], directory.checkpoint
    group = GROUP_OF[directory.description["objective"]]
    values = task.config[group]
    if epoch > values["epochs"]:
        raise InputError(
            f"The run in {directory.folder} has done {epoch} epochs already, more "
            f"than {values['epochs']}."
        )
    stop = values.get("stop_on", task.monitor), values.get("patience", 0)
    stalled = has_stalled(checkpoint.history, *stop)
    max_steps = values.get("max_steps")
    steps = task.steps_per_epoch(group, strategy.num_replicas_in_sync)
    model, before = model_of(trainer), steps_done(trainer)
    check_steps(directory, max_steps, before, epoch * steps)
    is_over = stalled or (max_steps is not None and before >= max_steps)
    epochs = epoch if is_over else values["epochs"]
    if epoch < epochs:
        directory.begin()
    validation = task.validation(model)
    if values.get("average", 1) > 1:
        validation = AveragedValidation(validation, checkpoint, values["average"])
    # Progress before the validation, which has its own.
    callbacks = [StopIfNotFinite(), EpochSeeds(seed), EpochProgress(), validation]
    if values.get("halved_after"):
        callbacks.append(
            HalveOnPlateau(
                values["learning_rate"], values["halved_after"], checkpoint.history
            )
        )
    if directory.is_chief:
        # Only the chief writes files.
        logs = TensorBoardLogs(directory.folder / "logs", task.summaries)
        callbacks += [logs, checkpoint]
        if group == "self_critical":
            callbacks.append(
                SelfCriticalAdvice(trainer.max_length, task.monitor, checkpoint.history)
            )
    callbacks.append(StopEarly(checkpoint, *stop, strategy))
    if max_steps is not None:
        callbacks.append(StopAtStep(max_steps))
    trainer.fit(
        task.train_batches(model, group, epoch),
        initial_epoch=epoch,
        epochs=epochs,
        steps_per_epoch=steps,
        verbose=2,
        callbacks=callbacks,
    )
    # In half precision, the optimizer skips steps whose scaled gradients overflow.
    if epoch < epochs and steps_done(trainer) == before:
        raise InputError(
            f"The run in {directory.folder} made no update: in half precision all its "
            "steps overflowed. Train for longer, or with --config.precision=float32."
        )
    if has_stalled(checkpoint.history, *stop):
        monitor, patience = stop
        print(
            f"Stopped after epoch {len(checkpoint.history)}: {monitor} has not become "
            f"better for {patience} epochs"
        )
    wait_for_all(strategy)


def check_steps(
    directory: RunDirectory, max_steps: int | None, done: int, whole: int
) -> None:
    """Raises `InputError` if a run cannot end after other steps than it did.

    Args:
        directory: `RunDirectory` of the phase.
        max_steps: int, number of updates after which training ends, or `None`.
        done: int, number of updates done.
        whole: int, number of updates of as many whole epochs.
    """
    if max_steps is not None and done > max_steps:
        raise InputError(
            f"The run in {directory.folder} has done {done} steps already, more than "
            f"{max_steps}."
        )
    begun = read_begun(directory.folder)
    group = GROUP_OF[directory.description["objective"]]
    ended = begun and begun["config"][group].get("max_steps")
    if ended != max_steps and ended == done < whole:
        raise InputError(
            f"The run in {directory.folder} ended after {ended} steps, within an "
            "epoch, whose other steps cannot be resumed: train for longer in another "
            "--output_dir."
        )


def set_decoding(task: Task, model: Any) -> bool:
    """Sets a model's options of decoding and of compilation from the configuration.

    Args:
        task: The task. A task without the group `decoding` generates nothing.
        model: A model of the task, or an ensemble.

    Returns:
        bool, whether the options of decoding changed.

    Raises:
        InputError: If models of the task do not support the limit of the length.
    """
    model.jit_compile = task.config["jit_compile"]
    if "decoding" not in task.config:
        return False
    before, model.decoding = model.decoding, Decoding(**task.config["decoding"])
    # Raises if the limit is proportional to inputs that have no length.
    model.limits(model.input_specs, model.decoding)
    return model.decoding != before


def check_space(directory: RunDirectory, model: Any) -> None:
    """Raises `InputError` if the disk has no space for the files of a run."""
    if not directory.is_chief:
        return
    needed = COPIES * 4 * count_parameters(model)  # bytes of float32
    free = shutil.disk_usage(directory.folder).free
    if free < needed:
        raise InputError(
            f"{directory.folder}: a run of {model.name} writes {needed / 1e6:,.1f} MB, "
            f"and {free / 1e6:,.1f} MB are free."
        )


def count_parameters(model: Any) -> int:
    return sum(math.prod(v.shape) for v in model.trainable_variables)
