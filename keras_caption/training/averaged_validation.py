import pathlib
from typing import Any

import keras
import numpy as np

from keras_caption.base.arguments import Count, check
from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError
from keras_caption.formats.arrays import read_npz
from keras_caption.formats.faults import reading
from keras_caption.training.callbacks import Checkpoint, model_of


class AveragedValidation(keras.callbacks.Callback):
    """Validates and saves the mean of the weights of the last epochs.

    At the end of every epoch, the callback writes the weights to `weights/epoch_N.npz`
    in the folder of the run, and removes files that no later epoch needs. It validates
    the mean of the last `count` epochs, or of fewer at the start; `checkpoint` saves
    the mean as `best.keras` if it scores best. Training continues from the weights of
    the last epoch.

    A resumed run reads the files, and computes the same means as an uninterrupted one.

    Args:
        validation: Callback that adds scores of the model to the logs of an epoch.
        checkpoint: `Checkpoint` of the run, which must be a later callback.
        count: int, number of epochs to average.
    """

    def __init__(
        self, validation: keras.callbacks.Callback, checkpoint: Checkpoint, count: int
    ):
        super().__init__()
        check(Count, count=count)
        self.validation = validation
        self.checkpoint = checkpoint
        self.count = count

    def set_model(self, model):
        super().set_model(model)
        self.validation.set_model(model)

    def on_epoch_end(self, epoch, logs=None):
        model = model_of(self.model)
        weights = model.get_weights()
        mean = self._mean(epoch, weights)
        model.set_weights(mean)
        try:
            self.validation.on_epoch_end(epoch, logs)
        finally:
            model.set_weights(weights)
        # `Checkpoint` saves these weights as the best, and the model's own as the last.
        self.checkpoint.validated = mean

    def _mean(self, epoch, weights):
        """Saves the weights of an epoch; returns the mean of the last epochs."""
        with replacing(self._file(epoch)) as partial, open(partial, "wb") as file:
            np.savez(file, **{str(i): weight for i, weight in enumerate(weights)})
        # The mean of this epoch does not need it, nor do later ones.
        self._file(epoch - self.count).unlink(missing_ok=True)
        # Sums in float64: float32 would lose digits of the mean.
        sums = [weight.astype("float64") for weight in weights]
        earlier = range(max(0, epoch - self.count + 1), epoch)
        for number in earlier:
            for total, weight in zip(sums, self._read(number, weights), strict=True):
                total += weight
        count = len(earlier) + 1
        return [
            (x / count).astype(weight.dtype)
            for x, weight in zip(sums, weights, strict=True)
        ]

    def _read(self, epoch: int, like: list[Any]) -> list[Any]:
        path = self._file(epoch)
        with reading(path):
            arrays = read_npz(path, [str(i) for i in range(len(like))])
        weights = list(arrays.values())
        if any(x.shape != y.shape for x, y in zip(weights, like, strict=True)):
            raise InputError(f"{path} holds the weights of another model.")
        return weights

    def _file(self, epoch: int) -> pathlib.Path:
        return self.checkpoint.folder / "weights" / f"epoch_{epoch + 1}.npz"
