from typing import Any

import keras
from keras import ops

from keras_caption.base.arguments import Count, Positive, check
from keras_caption.base.configs import arguments_of


@keras.saving.register_keras_serializable("keras_caption")
class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that grows linearly, then falls with the square root of steps.

    At step t, counted from 1, with w = `warmup_steps`, it is

        learning_rate * min(t / w, sqrt(w / t))

    With `learning_rate = (d * w) ** -0.5` it is the schedule of a Transformer of size d
    (section 5.3).

    Args:
        learning_rate: float, the peak learning rate.
        warmup_steps: int, number of steps until the peak. Defaults to 4,000.

    Raises:
        InputError: If a number is out of range.

    Reference:
        Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    """

    def __init__(self, learning_rate: float, warmup_steps: int = 4000):
        check(Positive, learning_rate=learning_rate)
        check(Count, warmup_steps=warmup_steps)
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Any:
        # Keras counts steps from 0, the paper from 1.
        steps = (ops.cast(step, "float32") + 1.0) / self.warmup_steps
        return self.learning_rate * ops.minimum(steps, ops.rsqrt(steps))

    def get_config(self) -> dict[str, Any]:
        return arguments_of(self, InverseSquareRoot)
