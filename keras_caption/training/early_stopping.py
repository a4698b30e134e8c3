from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_caption.base.arguments import Count, check
from keras_caption.training.callbacks import Checkpoint, steps_done
from keras_caption.training.strategies import on_any_worker


class StopEarly(keras.callbacks.Callback):
    """Ends training once a log has stopped improving.

    Put it after `Checkpoint`. The callback reads the history of the checkpoint, so that
    a resumed run stops after the same epoch as an uninterrupted one.

    Args:
        checkpoint: `Checkpoint` of the run.
        monitor: str, name of the log, see `has_stalled`.
        patience: int, number of epochs without a better value.
        strategy: `tf.distribute.Strategy` whose workers all have this callback. They
            stop together, though only the chief's checkpoint has a history. Defaults
            to `None`, one worker.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        monitor: str,
        patience: int,
        strategy: Any = None,
    ):
        super().__init__()
        self.checkpoint = checkpoint
        self.monitor = monitor
        self.patience = patience
        self.strategy = strategy

    def on_epoch_end(self, epoch, logs=None):
        stalled = has_stalled(self.checkpoint.history, self.monitor, self.patience)
        if self.patience and self.strategy is not None:
            # A worker that went on alone would wait for the others forever.
            stalled = on_any_worker(self.strategy, stalled)
        if stalled:
            self.model.stop_training = True


class StopAtStep(keras.callbacks.Callback):
    """Ends training, and its last epoch, after a number of updates.

    Args:
        steps: int, number of updates of the optimizer.
    """

    def __init__(self, steps: int):
        super().__init__()
        check(Count, steps=steps)
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        if steps_done(self.model) >= self.steps:
            self.model.stop_training = True


def has_stalled(history: Sequence[dict[str, Any]], monitor: str, patience: int) -> bool:
    """Returns whether a log has not improved in the last epochs.

    Args:
        history: The logs of all epochs, a list of dict.
        monitor: str, name of a log. A loss, whose name ends in `"loss"`, is best at its
            minimum, any other log at its maximum. NaN is worse than any number.
        patience: int, number of epochs without improvement; 0 disables the check.
    """
    if not patience or not history:
        return False
    sign = -1.0 if monitor.endswith("loss") else 1.0
    scores = sign * np.array([row[monitor] for row in history])
    # The first of equal scores: a tie is no improvement.
    best = np.where(np.isnan(scores), -np.inf, scores).argmax()
    return bool(len(scores) - 1 - best >= patience)
