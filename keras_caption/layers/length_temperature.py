import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class LengthTemperature(keras.layers.Layer):
    """A temperature that grows with the number of items attended to.

        sqrt(length + key_dim)

    in place of `sqrt(key_dim)`: the more items there are, the flatter the softmax
    over them (Eq. 2). The length is that of what a query may look at: padding and,
    behind a causal mask, later words do not count, so that a cached decoder finds
    what a teacher-forced one does.

    It fills the `temperature` socket of `MultiHeadAttention`.

    Call arguments:
        keys: `(batch, heads, M, key_dim)`.
        mask: Optional bool, broadcastable to `(batch, T, M)`, True where a query may
            look.

    Returns:
        float32, a scalar or, with a mask, broadcastable to `(batch, heads, T, 1)`.

    Reference:
        Springenberg et al., "Image-to-Text Transduction with Spatial
        Self-Attention", ESANN 2018.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, keys, mask=None):
        if mask is None:
            length = ops.cast(ops.shape(keys)[2], "float32")
        else:
            length = ops.sum(ops.cast(mask, "float32"), axis=-1)
            length = ops.expand_dims(ops.expand_dims(length, 1), -1)
        return ops.sqrt(length + keys.shape[-1])
