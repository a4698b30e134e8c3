import itertools
from collections.abc import Iterable
from typing import Any

import keras

LEAST_ENTROPY = 0.02  # nats per token: most of five samples of ten tokens are equal
NEAR_LIMIT = 0.95  # of the greatest length
EPOCHS = 3  # in succession, which are no noise of an epoch


class SelfCriticalAdvice(keras.callbacks.Callback):
    """Prints advice if the logs of self-critical training show a known problem.

    Each problem is printed once: the entropy of the samples vanishes; their mean length
    reaches its limit; the reward falls for three epochs; the reward rises for three
    epochs in which the validation falls. Put it after the validation.

    Args:
        max_length: int, greatest number of tokens of a sample.
        monitor: str, name of the log of the validation, of which more is better.
        history: Iterable of dict, the logs of the epochs before an interruption.
    """

    def __init__(
        self, max_length: int, monitor: str, history: Iterable[dict[str, Any]] = ()
    ):
        super().__init__()
        self.max_length = max_length
        self.monitor = monitor
        self.rows: list[dict[str, Any]] = []
        self.said: set[str] = set()
        for row in history:
            self._notes(row)  # said before

    def on_epoch_end(self, epoch, logs=None):
        for note in self._notes(logs):
            print(f"\nnote: {note}", flush=True)

    def _notes(self, row):
        """The notes on an epoch that were not printed before, a list of str."""
        self.rows.append(dict(row))
        entropy, length = row["entropy"], row["length"]
        falls, rises = self._falls("reward"), self._falls("reward", -1)
        causes = {
            "entropy": (
                entropy < LEAST_ENTROPY,
                f"the samples have {entropy:.3f} nats a token: nearly all are equal, "
                "so that nothing is learned from them. Take an earlier epoch, a lower "
                "learning rate, or a share of cross-entropy "
                "(--config.self_critical.cross_entropy=0.2).",
            ),
            "length": (
                length >= NEAR_LIMIT * self.max_length,
                f"the samples have {length:.1f} tokens of {self.max_length} at most: "
                "they do not end. The reward may grow with the length, or the limit be "
                "too low for the data (--config.decoding.max_length).",
            ),
            "reward": (
                falls,
                f"the reward has fallen for {EPOCHS} epochs: the learning rate may be "
                "too high, or the model not trained enough with cross-entropy before.",
            ),
            "validation": (
                rises and self._falls(self.monitor),
                f"the reward has risen for {EPOCHS} epochs in which {self.monitor} "
                "fell: the model learns the training images, or what the reward counts "
                "and the validation does not.",
            ),
        }
        notes = []
        for name, (applies, note) in causes.items():
            if applies and name not in self.said:
                self.said.add(name)
                notes.append(note)
        return notes

    def _falls(self, name, sign=1):
        """Whether a log has fallen, or risen, in each of the last epochs."""
        values = [sign * row[name] for row in self.rows[-EPOCHS - 1 :]]
        pairs = itertools.pairwise(values)
        return len(values) > EPOCHS and all(later < earlier for earlier, later in pairs)
