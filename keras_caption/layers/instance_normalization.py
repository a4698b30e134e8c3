from typing import Any

import keras
from jaxtyping import Bool, Float, Int
from keras import ops

from keras_caption.arguments import (
    CountOrZero,
    NotNegative,
    Shape,
    Tensor,
    check,
)

# Two items are distinct if their squared distance is above this fraction of the mean of
# their squared norms. Orthogonal vectors reach 2; two equal vectors of which dropout
# zeroed a tenth each reach 0.22.
DISTINCT = 0.5


@keras.saving.register_keras_serializable("keras_caption")
class InstanceNormalization(keras.layers.Layer):
    """Instance normalization of each channel over the items of a set.

    Every channel of every example is normalized to zero mean and unit variance over
    the valid items. Applied to the queries (or keys) of self-attention, this is
    normalized self-attention (NSA):

        x_hat[b, n, c] = (x[b, n, c] - mean_n x[b, :, c])
                         / sqrt(var_n x[b, :, c] + epsilon)

    Padding does not contribute to the statistics, and its output is 0. The variance of
    a set of one valid item is 0, and so is its output (or `beta`, if affine).
    Statistics are computed in float32 whatever the dtype policy.

    The paper gives no epsilon. The other arguments are ours: they ablate the steps of
    NSA, or skip it where a set is too small for statistics.

    Args:
        affine: bool, whether to learn a gain and an offset per channel. Defaults to
            `False`.
        epsilon: float, added to the variance. Defaults to 1e-5, ours.
        centred: bool, whether to subtract the mean. Defaults to `True`.
        scaled: bool, whether to divide by the deviation. Defaults to `True`.
        noise: float, range of the noise. Each training step multiplies all items by
            1 + u and adds v, both uniform per channel in [-`noise`, `noise`]: a random
            shift in place of the one that normalization removes. Defaults to 0.
        min_distinct: int, number of distinct items below which an example is not
            normalized. Defaults to 0: all examples are.

    Call arguments:
        inputs: float `(batch, items, channels)`.
        mask: bool `(batch, items)`, True for valid items. Defaults to `None`, all
            valid.

    Returns:
        A tensor of the shape and dtype of `inputs`.

    Reference:
        Guo et al., "Normalized and Geometry-Aware Self-Attention Network for
        Image Captioning", CVPR 2020, section 4.1, Eq. 6 and 7.
    """

    def __init__(
        self,
        affine: bool = False,
        epsilon: float = 1e-5,
        centred: bool = True,
        scaled: bool = True,
        noise: float = 0.0,
        min_distinct: int = 0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check(NotNegative, noise=noise)
        check(CountOrZero, min_distinct=min_distinct)
        self.supports_masking = True
        self.affine = affine
        self.epsilon = epsilon
        self.centred = centred
        self.scaled = scaled
        self.noise = noise
        self.min_distinct = min_distinct
        if noise:
            self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape: Shape) -> None:
        if self.affine:
            channels = (input_shape[-1],)
            self.gamma = self.add_weight(channels, initializer="ones", name="gamma")
            self.beta = self.add_weight(channels, initializer="zeros", name="beta")

    def call(
        self,
        inputs: Float[Tensor, "batch items channels"],
        mask: Bool[Tensor, "batch items"] | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch items channels"]:
        items = ops.cast(inputs, "float32")
        if mask is None:
            # Not `ops.moments`: on PyTorch it loses all digits when the mean is large.
            x = items - ops.mean(items, axis=1, keepdims=True)
            variance = ops.mean(ops.square(x), axis=1, keepdims=True)
        else:
            valid = ops.expand_dims(mask, -1)
            count = ops.sum(ops.cast(valid, "float32"), axis=1, keepdims=True)
            # A set without valid items divides 0 by 1, not by 0.
            count = ops.maximum(count, 1.0)
            # `where`, not a product: padding may hold NaN or infinity.
            items = ops.where(valid, items, 0.0)
            mean = ops.sum(items, axis=1, keepdims=True) / count
            x = ops.where(valid, items - mean, 0.0)
            variance = ops.sum(ops.square(x), axis=1, keepdims=True) / count
        if not self.centred:
            x = items
        if self.scaled:
            x = x * ops.rsqrt(variance + self.epsilon)
        if self.affine:
            x = x * ops.cast(self.gamma, "float32") + ops.cast(self.beta, "float32")
        if self.noise and training:
            x = x * (1 + self._noise(inputs)) + self._noise(inputs)
        if self.min_distinct:
            few = distinct_items(items, mask) < self.min_distinct
            x = ops.where(ops.reshape(few, (-1, 1, 1)), items, x)
        # Offset and noise have moved padding away from 0.
        if mask is not None and (self.affine or self.noise):
            x = ops.where(valid, x, 0.0)
        return ops.cast(x, inputs.dtype)

    def _noise(self, inputs):
        return keras.random.uniform(
            (inputs.shape[-1],), -self.noise, self.noise, seed=self.seed_generator
        )

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "affine": self.affine,
            "epsilon": self.epsilon,
            "centred": self.centred,
            "scaled": self.scaled,
            "noise": self.noise,
            "min_distinct": self.min_distinct,
        }


def distinct_items(
    items: Float[Tensor, "batch items channels"],
    mask: Bool[Tensor, "batch items"] | None,
) -> Int[Tensor, " batch"]:
    """Counts the valid items that differ from all earlier ones, see `DISTINCT`."""
    products = ops.matmul(items, ops.swapaxes(items, 1, 2))  # (batch, items, items)
    norms = ops.diagonal(products, axis1=1, axis2=2)
    norms = (ops.expand_dims(norms, 1) + ops.expand_dims(norms, 2)) / 2
    # |a - b|^2 = |a|^2 + |b|^2 - 2 a b
    alike = 2 * (norms - products) <= DISTINCT * norms
    if mask is None:
        mask = ops.ones_like(items[..., 0], dtype="bool")
    alike = ops.logical_and(alike, ops.expand_dims(mask, 1))
    earlier = ops.any(ops.tril(ops.cast(alike, "int32"), -1) > 0, axis=-1)
    new = ops.logical_and(mask, ops.logical_not(earlier))
    return ops.sum(ops.cast(new, "int32"), axis=1)
