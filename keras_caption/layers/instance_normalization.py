import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class InstanceNormalization(keras.layers.Layer):
    """Instance normalization over the items of a set, one channel at a time.

    Every channel of every example is brought to zero mean and unit variance
    over its real items. Applied to the queries (or keys) of self-attention this
    is normalized self-attention, NSA:

        x_hat[b, n, c] = (x[b, n, c] - mean_n x[b, :, c])
                         / sqrt(var_n x[b, :, c] + epsilon)

    Padded items neither contribute to the statistics nor receive a value: their
    output is zero. A set of one real item has no spread, and its output is zero
    (or `beta`). Statistics are computed in float32 whatever the dtype policy.

    Args:
        affine: Whether to learn a gain and an offset per channel.
        epsilon: Added to the variance.

    Call arguments:
        inputs: `(batch, items, channels)`.
        mask: Optional bool `(batch, items)`, True where an item is real.

    Returns:
        A tensor of the shape and dtype of `inputs`.

    Reference:
        Guo et al., "Normalized and Geometry-Aware Self-Attention Network for
        Image Captioning", CVPR 2020, section 4.1, Eq. 6 and 7.
    """

    def __init__(self, affine=False, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.affine = affine
        self.epsilon = epsilon

    def build(self, input_shape):
        if self.affine:
            channels = (input_shape[-1],)
            self.gamma = self.add_weight(channels, initializer="ones", name="gamma")
            self.beta = self.add_weight(channels, initializer="zeros", name="beta")

    def call(self, inputs, mask=None):
        x = ops.cast(inputs, "float32")
        if mask is None:
            # Not `ops.moments`: PyTorch's loses all digits where the mean is large.
            x = x - ops.mean(x, axis=1, keepdims=True)
            variance = ops.mean(ops.square(x), axis=1, keepdims=True)
        else:
            real = ops.expand_dims(mask, -1)
            count = ops.sum(ops.cast(real, "float32"), axis=1, keepdims=True)
            count = ops.maximum(count, 1.0)
            mean = ops.sum(ops.where(real, x, 0.0), axis=1, keepdims=True) / count
            x = ops.where(real, x - mean, 0.0)
            variance = ops.sum(ops.square(x), axis=1, keepdims=True) / count
        x = x * ops.rsqrt(variance + self.epsilon)
        if self.affine:
            x = x * ops.cast(self.gamma, "float32") + ops.cast(self.beta, "float32")
            if mask is not None:
                x = ops.where(real, x, 0.0)
        return ops.cast(x, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "affine": self.affine, "epsilon": self.epsilon}
