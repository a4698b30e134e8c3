import pathlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.base.atomic import naming_tensorflows, write_json
from keras_caption.base.compilation import PATIENCE
from keras_caption.base.errors import InputError
from keras_caption.base.progress import progress
from keras_caption.formats.runs import SCALE, read_history


def model_of(trained: Any) -> Any:
    """Returns the model that a trainer such as `SelfCritical` trains, or the model."""
    return getattr(trained, "model", trained)


def steps_done(model: Any) -> int:
    """Returns the number of steps that a model's optimizer has taken, int."""
    return int(ops.convert_to_numpy(model.optimizer.iterations))


class OutputNote:
    """Prints a note, once, if a model's outputs are empty, equal or repetitive.

    A call takes the arguments of `keras_caption.evaluation.note_on_outputs`.
    """

    def __init__(self):
        self.printed = False

    def __call__(self, outputs: Sequence[str], references: Sequence[str], noun: str):
        from keras_caption.evaluation import note_on_outputs

        note = None if self.printed else note_on_outputs(outputs, references, noun)
        if note:
            print(f"\n{note}", flush=True)
            self.printed = True


class CaptionValidation(keras.callbacks.Callback):
    """Captions the validation images after every epoch, and scores the captions.

    Adds their CIDEr-D, times 100, to the epoch's logs as `val_cider`, and the loss as
    `val_loss`.

    Args:
        batches: Iterable of dicts with `image_id` beside the model's inputs.
        references: dict from image id to a list of str.
        beam_size: int, beam width. Defaults to 1, greedy search, the fastest.
        characters: bool, see `keras_caption.evaluation.cider`.
        loss: Function without arguments that returns the loss, a float, such as
            `ValidationLoss`. If omitted, no loss is added.
    """

    def __init__(
        self,
        batches: Iterable[dict[str, Any]],
        references: dict[int, list[str]],
        beam_size: int = 1,
        characters: bool = False,
        loss: Callable[[], float] | None = None,
    ):
        super().__init__()
        self.loss = loss
        self.batches = batches
        self.references = references
        self.characters = characters
        self.note = OutputNote()
        self.beam_size = beam_size

    def on_epoch_end(self, epoch, logs=None):
        from keras_caption.evaluation import cider

        model = model_of(self.model)
        batches = progress(self.batches, "Validation", unit="batches", leave=False)
        captions = model.caption(batches, beam_size=self.beam_size)
        score = cider(captions, self.references, self.characters)
        logs["val_cider"] = SCALE * score
        first_references = [self.references[image_id][0] for image_id in captions]
        self.note([*captions.values()], first_references, "validation captions")
        if self.loss is not None:
            logs["val_loss"] = self.loss()


class TranslationValidation(keras.callbacks.Callback):
    """Translates the validation sentences after every epoch, and scores them.

    Adds BLEU (`val_bleu`) and the share of translations that equal their reference
    (`val_exact`), both times 100, and the loss (`val_loss`) to the epoch's logs.

    Args:
        sources, references: Lists of str, sentences and their translations.
        tokenized: bool, see `keras_caption.evaluation.score_translations`.
        loss: Function without arguments that returns the loss, a float, such as
            `ValidationLoss`. If omitted, no loss is added.
        **options: Options of `Translator.translate`.
    """

    def __init__(
        self,
        sources: list[str],
        references: list[str],
        tokenized: bool = False,
        loss: Callable[[], float] | None = None,
        **options: Any,
    ):
        super().__init__()
        self.sources = sources
        self.references = references
        self.tokenized = tokenized
        self.loss = loss
        self.note = OutputNote()
        self.options = options

    def on_epoch_end(self, epoch, logs=None):
        from keras_caption.evaluation import score_translations

        model = model_of(self.model)
        translations = model.translate(self.sources, **self.options)
        scores, _ = score_translations(translations, self.references, self.tokenized)
        for name, metric in (("val_bleu", "BLEU"), ("val_exact", "exact")):
            logs[name] = SCALE * scores[metric]
        self.note(translations, self.references, "validation translations")
        if self.loss is not None:
            logs["val_loss"] = self.loss()


class EpochProgress(keras.callbacks.Callback):
    """Shows how far an epoch is: a bar on a terminal, elsewhere a line every 30 s.

    The first step of all, in which the others are compiled, is not counted: the time
    that is left is not that of so many first steps.
    """

    def on_train_begin(self, logs=None):
        self.begun = time.monotonic()

    def on_epoch_begin(self, epoch, logs=None):
        self.desc = f"Epoch {epoch + 1}"
        self.shown = self._count_from(0)

    def on_train_batch_end(self, batch, logs=None):
        if self.begun is None:
            self.shown.update()
            return
        seconds, self.begun = time.monotonic() - self.begun, None
        self.shown.close()
        if seconds > PATIENCE:
            print(f"The first step took {seconds:.0f} s, in which it was compiled.")
        self.shown = self._count_from(1)

    def on_epoch_end(self, epoch, logs=None):
        self.shown.close()

    def _count_from(self, done):
        steps = self.params["steps"]
        return progress(None, self.desc, steps, "steps", leave=False, initial=done)


class EpochSeeds(keras.callbacks.Callback):
    """Seeds the random generators of a model anew at every epoch.

    Keras does not save the states of dropout's random generators. Here they follow from
    the seed and the epoch's number, so that a resumed run has the states of an
    uninterrupted one.

    Args:
        seed: int.
    """

    def __init__(self, seed: int):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch, logs=None):
        states = [v for v in self.model.variables if "seed_generator_state" in v.path]
        sequence = np.random.SeedSequence([self.seed, epoch])
        for variable, value in zip(
            states, sequence.generate_state(len(states)), strict=True
        ):
            state = np.array([value, 0], "uint32")
            variable.assign(state.astype(variable.dtype))  # int32 on PyTorch


class HalveOnPlateau(keras.callbacks.ReduceLROnPlateau):
    """Halves the learning rate when the validation CIDEr-D stops rising.

    Put it after `CaptionValidation`.

    Args:
        learning_rate: float, the initial learning rate.
        patience: int, number of epochs without a new best score before the rate is
            halved.
        history: `Checkpoint.history`, the logs of the epochs before an interruption.
    """

    def __init__(
        self,
        learning_rate: float,
        patience: int,
        history: Iterable[dict[str, Any]] = (),
    ):
        super().__init__(
            "val_cider",
            factor=0.5,
            patience=patience,
            mode="max",
            min_delta=1e-4 * SCALE,
        )
        self.learning_rate = learning_rate
        self.history = list(history)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self.model.optimizer.learning_rate = self.learning_rate
        for row in self.history:
            # Replays earlier epochs, which restores the best score and the halvings.
            self.on_epoch_end(row["epoch"] - 1, dict(row))


class StopIfNotFinite(keras.callbacks.Callback):
    """Ends training with an error as soon as the loss is NaN or infinite.

    Put it before `Checkpoint`, whose files then hold the last epoch with a finite loss.

    Raises:
        InputError: If the loss is not finite, with the epoch and the step.
    """

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        loss = float(logs["loss"])
        if not np.isfinite(loss):
            raise InputError(
                f"The loss is {loss} at step {batch + 1} of epoch {self.epoch + 1}: "
                "the learning rate may be too large, or a feature or a reward of "
                "that batch not finite."
            )


class TensorBoardLogs(keras.callbacks.TensorBoard):
    """Writes the logs of every epoch for TensorBoard, without the graph.

    Args:
        folder: Path of the folder to write them to.
        summaries: Function that makes further summaries of a model at the end of an
            epoch, see `Task.summaries`.

    Raises:
        OSError: If the logs cannot be written, for example on a full disk.
    """

    def __init__(
        self,
        folder: pathlib.Path | str,
        summaries: Callable[[Any], Mapping[str, Any]] = lambda model: {},
    ):
        super().__init__(folder, write_graph=False)
        self.summaries = summaries

    def on_train_begin(self, logs=None):
        with naming_tensorflows(self.log_dir):
            super().on_train_begin(logs)

    def on_epoch_end(self, epoch, logs=None):
        with naming_tensorflows(self.log_dir):
            super().on_epoch_end(epoch, logs)
            with self._train_writer.as_default(epoch):
                for name, value in self.summaries(model_of(self.model)).items():
                    write_summary(name, value)
            # Written now, so that a full disk is reported in the epoch that filled it.
            self._train_writer.flush()

    def on_train_end(self, logs=None):
        with naming_tensorflows(self.log_dir):
            super().on_train_end(logs)


def write_summary(name: str, value: str | np.ndarray) -> None:
    """Writes Markdown, or an image `(height, width, channels)`, for TensorBoard."""
    import tensorflow as tf

    if isinstance(value, str):
        tf.summary.text(name, value)
    else:
        tf.summary.image(name, value[None])


class Checkpoint(keras.callbacks.Callback):
    """Saves the best model of a run, and the state needed to resume it.

    After every epoch, `last.keras` holds the model with its optimizer, and
    `history.json` the logs of all epochs; `best.keras`, without optimizer, is the model
    of the epoch with the greatest `monitor`. Each file is replaced atomically, so that
    `resume` works whenever the process ended.

    Args:
        folder: Path of the folder to keep the files in.
        monitor: str, name of the log whose greatest value is the best.

    Attributes:
        history: List of dict, the logs of all epochs.
        validated: List of arrays, the weights that were validated, or `None` if they
            are those of the model, see `AveragedValidation`.
    """

    def __init__(self, folder: pathlib.Path | str, monitor: str = "val_cider"):
        super().__init__()
        self.folder = pathlib.Path(folder)
        self.monitor = monitor
        self.history: list[dict[str, Any]] = []
        self.validated: list[np.ndarray] | None = None

    def resume(self, model: Any) -> int:
        """Reads the history up to the epoch that a loaded model has reached.

        Args:
            model: The model loaded from `last.keras`.

        Returns:
            The number of epochs done.

        Raises:
            InputError: If `history.json` is damaged, or belongs to another model.
        """
        history, reached = read_history(self.folder, self.monitor), steps_done(model)
        self.history = [row for row in history if row["iterations"] <= reached]
        epochs = [row["epoch"] for row in self.history]
        steps = [row["iterations"] for row in self.history]
        if epochs != [*range(1, len(epochs) + 1)] or steps[-1:] != [reached]:
            raise InputError(
                f"{self.folder / 'history.json'} is not the history of last.keras, "
                f"whose optimizer has done {reached} steps."
            )
        return len(epochs)

    def on_epoch_end(self, epoch, logs=None):
        model = model_of(self.model)
        # `fmax`, not `max`: no score would be greater than an earlier NaN.
        scores = [row[self.monitor] for row in self.history]
        previous = np.fmax.reduce(scores, initial=-np.inf)
        # Not epochs times steps: in half precision, steps that overflow are skipped.
        iterations = steps_done(model)
        self.history.append(
            {
                "epoch": epoch + 1,
                "iterations": iterations,
                "scale": SCALE,
                **{name: float(value) for name, value in logs.items()},
            }
        )
        if logs[self.monitor] > previous:
            # A copy without the optimizer, whose moments would triple the file.
            best = type(model).from_config(model.get_config())
            best.set_weights(self.validated or model.get_weights())
            best.save(self.folder / "best.keras")
        # Before `last.keras`: if the process ends in between, the history has an epoch
        # too many, which `resume` drops.
        write_json(self.folder / "history.json", self.history)
        model.save(self.folder / "last.keras")
