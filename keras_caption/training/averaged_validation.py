import pathlib
from typing import Any

import keras
import numpy as np

from keras_caption.arguments import Count, check
from keras_caption.atomic import replacing
from keras_caption.errors import InputError
from keras_caption.formats.arrays import read_npz
from keras_caption.formats.faults import reading
from keras_caption.training.callbacks import Checkpoint, model_of


class AveragedValidation(keras.callbacks.Callback):
    """Validates and keeps the mean of the weights of the last epochs.

    At the end of every epoch it writes the weights to `weights/epoch_N.npz` in the
    folder of the run, and removes those that no later epoch needs. The mean of the
    last `count` epochs, or of those there are, is validated, and `checkpoint` keeps it
    as `best.keras` if it is the best. Training itself continues from its own weights.

    A resumed run reads the files, and averages what an uninterrupted run does.

    Args:
        validation: Callback that adds scores of the model to the logs of an epoch.
        checkpoint: `Checkpoint` of the run, a later callback.
        count: int, number of epochs.
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
        own = model.get_weights()
        mean = self._mean(epoch, own)
        model.set_weights(mean)
        try:
            self.validation.on_epoch_end(epoch, logs)
        finally:
            model.set_weights(own)
        self.checkpoint.validated = mean

    def _mean(self, epoch, own):
        """The mean of the weights of the last epochs, this one among them."""
        with replacing(self._file(epoch)) as partial, open(partial, "wb") as file:
            np.savez(file, **{str(i): weight for i, weight in enumerate(own)})
        self._file(epoch - self.count).unlink(missing_ok=True)
        sums = [weight.astype("float64") for weight in own]
        earlier = range(max(0, epoch - self.count + 1), epoch)
        for number in earlier:
            for total, weight in zip(sums, self._read(number, own), strict=True):
                total += weight
        count = len(earlier) + 1
        return [
            (x / count).astype(weight.dtype)
            for x, weight in zip(sums, own, strict=True)
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
