from typing import Any

import keras
from keras import ops

from keras_caption.base.arguments import (
    Count,
    NotNegative,
    Positive,
    Share,
    ShareAboveZero,
    check,
)
from keras_caption.base.configs import arguments_of
from keras_caption.base.errors import InputError


@keras.saving.register_keras_serializable("keras_caption")
class WarmupStepDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that warms up and then decays, in steps of epochs.

    In epoch t, counted from `first_epoch + 1`, it is

        learning_rate * min(t, warmup_epochs) / warmup_epochs

    multiplied by `decay_rate` in the first epoch after epoch `decay_after`, and again
    every `decay_every` epochs. The defaults are NG-SAN's (section 5.1): min(t, 3) x
    1e-4, halved every 3 epochs after the 6th.

    Args:
        steps_per_epoch: int, number of steps of an epoch.
        learning_rate: float, the peak learning rate.
        warmup_epochs: int, number of epochs until the peak.
        decay_after: int, last epoch without decay.
        decay_every: int, number of epochs between two decays.
        decay_rate: float above 0, at most 1, the factor of each decay.
        first_epoch: int, number of epochs of an earlier phase.

    Raises:
        InputError: If a number is out of range.
    """

    def __init__(
        self,
        steps_per_epoch: int,
        learning_rate: float = 3e-4,
        warmup_epochs: int = 3,
        decay_after: int = 6,
        decay_every: int = 3,
        decay_rate: float = 0.5,
        first_epoch: int = 0,
    ):
        check(Count, steps_per_epoch=steps_per_epoch)
        check(Positive, learning_rate=learning_rate, decay_every=decay_every)
        check(NotNegative, warmup_epochs=warmup_epochs, decay_after=decay_after)
        check(ShareAboveZero, decay_rate=decay_rate)
        self.steps_per_epoch = steps_per_epoch
        self.learning_rate = learning_rate
        self.warmup_epochs = warmup_epochs
        self.decay_after = decay_after
        self.decay_every = decay_every
        self.decay_rate = decay_rate
        self.first_epoch = first_epoch

    def __call__(self, step: Any) -> Any:
        epoch = self.first_epoch + epochs_done(step, self.steps_per_epoch) + 1.0
        warmup = ops.minimum(epoch / self.warmup_epochs, 1.0)
        # The first decay comes with the first epoch after `decay_after`, hence `ceil`.
        decays = ops.ceil((epoch - self.decay_after) / self.decay_every)
        decay = self.decay_rate ** ops.maximum(decays, 0.0)
        return self.learning_rate * warmup * decay

    def get_config(self) -> dict[str, Any]:
        return arguments_of(self, WarmupStepDecay)


def schedule_of(
    values: dict[str, Any], steps_per_epoch: int, first_epoch: int = 0
) -> WarmupStepDecay:
    """Makes the learning rate schedule of a configuration.

    Args:
        values: dict, a group of the configuration.
        steps_per_epoch, first_epoch: See `WarmupStepDecay`.
    """
    names = ("learning_rate", "warmup_epochs", "decay_after", "decay_every")
    return WarmupStepDecay(
        steps_per_epoch,
        **{name: values[name] for name in (*names, "decay_rate")},
        first_epoch=first_epoch,
    )


def check_warmup(
    values: dict[str, Any], steps_per_epoch: int, where: str, shortened: bool = False
) -> None:
    """Raises `InputError` if a phase ends before the end of its warm-up.

    Args:
        values: dict, a group of the configuration, of any task.
        steps_per_epoch: int, number of steps of an epoch.
        where: str, the group's name, for the message.
        shortened: bool, whether the user only shortened the phase, as for a first try.
            A note then replaces the error.
    """
    epochs = values["epochs"]
    steps = epochs * steps_per_epoch
    if values.get("max_steps") is not None:
        steps = min(steps, values["max_steps"])
    for name, count, noun in (
        ("warmup_epochs", epochs, "epochs"),
        ("warmup_steps", steps, "steps"),
    ):
        warmup = values.get(name, 0)
        if warmup > count:
            fault = (
                f"--config.{where}.{name}={warmup} is more than the {count} {noun} of "
                "the run, so that it would never reach its learning rate"
            )
            if not shortened:
                raise InputError(
                    f"{fault}: train for more {noun}, or warm up for fewer."
                )
            print(f"note: {fault}")


class ScheduledSampling:
    """A sampling probability that grows in steps of epochs.

    For `ScheduledSamplingTrainer`. The defaults are AoANet's: 5 % more every 5 epochs
    (section 3.4), at most 50 % (its released code).

    Args:
        steps_per_epoch: int, number of steps of an epoch.
        increase: float, added to the probability at each increase.
        increase_every: int, number of epochs between two increases.
        maximum: float, the greatest probability.

    Raises:
        InputError: If a number is out of range.

    Call arguments:
        step: int scalar, number of steps done.

    Returns:
        The probability, float32 scalar.
    """

    def __init__(
        self,
        steps_per_epoch: int,
        increase: float = 0.05,
        increase_every: int = 5,
        maximum: float = 0.5,
    ):
        check(Count, steps_per_epoch=steps_per_epoch)
        check(Positive, increase_every=increase_every)
        check(Share, increase=increase, maximum=maximum)
        self.steps_per_epoch = steps_per_epoch
        self.increase = increase
        self.increase_every = increase_every
        self.maximum = maximum

    def __call__(self, step: Any) -> Any:
        epoch = epochs_done(step, self.steps_per_epoch)
        increases = ops.floor(epoch / self.increase_every)
        return ops.minimum(increases * self.increase, self.maximum)


def epochs_done(step, steps_per_epoch):
    """Returns the number of whole epochs in a number of steps, float32 scalar."""
    whole = ops.floor_divide(ops.cast(step, "int32"), steps_per_epoch)
    return ops.cast(whole, "float32")
