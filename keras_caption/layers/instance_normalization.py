from typing import Unpack

import keras
from jaxtyping import Bool, Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer


@keras.saving.register_keras_serializable("keras_caption")
class InstanceNormalization(ConfiguredLayer):
    """Instance normalization of each channel over the items of a set.

    Every channel of every example is normalized to zero mean and unit variance over
    the valid items. Applied to the queries (or keys) of self-attention, this is
    normalized self-attention (NSA):

        x_hat[b, n, c] = (x[b, n, c] - mean_n x[b, :, c])
                         / sqrt(var_n x[b, :, c] + epsilon)

    Padding does not contribute to the statistics, and its output is 0. The variance of
    a set of one valid item is 0, and so is its output (or `beta`, if affine).
    Statistics are computed in float32 whatever the dtype policy.

    The paper gives no epsilon. `centred` and `scaled` are ours: they take NSA apart.

    Args:
        affine: bool, whether to learn a gain and an offset per channel. Defaults to
            `False`.
        epsilon: float, added to the variance. Defaults to 1e-5, ours.
        centred: bool, whether to subtract the mean. Defaults to `True`.
        scaled: bool, whether to divide by the deviation. Defaults to `True`.

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
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.affine = affine
        self.epsilon = epsilon
        self.centred = centred
        self.scaled = scaled

    def build(self, input_shape: Shape) -> None:
        if self.affine:
            channels = (input_shape[-1],)
            self.gamma = self.add_weight(channels, initializer="ones", name="gamma")
            self.beta = self.add_weight(channels, initializer="zeros", name="beta")

    def call(
        self,
        inputs: Float[Tensor, "batch items channels"],
        mask: Bool[Tensor, "batch items"] | None = None,
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
        if mask is not None and self.affine:
            x = ops.where(valid, x, 0.0)
        return ops.cast(x, inputs.dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape
