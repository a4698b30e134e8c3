from collections.abc import Callable, Sequence
from typing import Any

import keras
from jaxtyping import Float32, Int

from keras_caption.base.arguments import Finite, Tensor, check
from keras_caption.base.errors import InputError


class WeightedSum(keras.layers.Layer):
    """Weighted sum of several rewards.

    Args:
        rewards: Sequence of rewards: functions or layers of captions and references,
            see `keras_caption.training.SelfCritical`.
        weights: Sequence of float, one for each reward. Defaults to all 1.
        **kwargs: Further arguments of `keras.layers.Layer`.

    Attributes:
        reads: Names of the tensors of a batch that rewards take with references.

    Call arguments:
        captions: int `(batch * C, T)`, C captions for each image.
        references: int `(batch, R, T')`.
        **read: Tensors of the batch, by the names in `reads`.

    Returns:
        float32 `(batch * C,)`.

    Raises:
        InputError: If there are no rewards, if the numbers of rewards and weights
            differ, or if a weight is not finite in float32 or rounds to 0.

    Example:

    ```python
    cider_d = kc.rewards.CiderD.from_references(training_references)
    bleu = kc.rewards.SentenceBleu()
    reward = kc.rewards.WeightedSum([cider_d, bleu], weights=[1.0, 0.5])
    ```
    """

    def __init__(
        self,
        rewards: Sequence[Callable],
        weights: Sequence[float] | None = None,
        **kwargs: Any,
    ):
        super().__init__(dtype="float32", trainable=False, **kwargs)
        rewards = list(rewards)
        weights = [1.0] * len(rewards) if weights is None else list(weights)
        if not rewards or len(weights) != len(rewards):
            raise InputError(
                "A weighted sum needs rewards, and one weight for each. Received: "
                f"{len(rewards)} rewards and {len(weights)} weights"
            )
        for weight in weights:
            check(Finite, weights=weight)
        self.rewards = rewards
        self.reward_weights = weights
        names = [name for reward in rewards for name in reads_of(reward)]
        self.reads = tuple(dict.fromkeys(names))
        self.built = True

    def call(
        self,
        captions: Int[Tensor, "batch*C T"],
        references: Int[Tensor, "batch R T_reference"],
        **read: Tensor,
    ) -> Float32[Tensor, " batch*C"]:
        return sum(
            weight
            * reward(captions, references, **{n: read[n] for n in reads_of(reward)})
            for weight, reward in zip(self.reward_weights, self.rewards, strict=True)
        )


def reads_of(reward: Callable) -> tuple[str, ...]:
    """Names of the tensors of a batch that a reward takes, beside references."""
    return getattr(reward, "reads", ())
