import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class LengthTemperature(keras.layers.Layer):
    """A temperature that grows with the number of keys.

        sqrt(length + key_dim)

    in place of `sqrt(key_dim)`: the more keys there are, the flatter the softmax
    over them (Eq. 2). All keys count, also those that a causal mask hides from a
    query, as in the paper; padding does not, so that captions do not depend on what
    else is in a batch.

    A decoder with a cache sees only the keys so far. For its steps to agree with
    teacher forcing, give its self-attention a constant `length`.

    It fills the `temperature` socket of `MultiHeadAttention`.

    Args:
        length: int, number of keys to assume. If omitted, the number of keys that
            any query may attend to.

    Call arguments:
        keys: `(batch, heads, M, key_dim)`.
        mask: Optional bool, broadcastable to `(batch, T, M)`, True where a query may
            attend.

    Returns:
        float32, a scalar or, with a mask, `(batch, 1, 1, 1)`; `batch` is 1 where the
        mask's is.

    Reference:
        Springenberg et al., "Image-to-Text Transduction with Spatial
        Self-Attention", ESANN 2018, section 2.3.
    """

    def __init__(self, length=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.length = length

    def call(self, keys, mask=None):
        if self.length is not None:
            length = ops.cast(self.length, "float32")
        elif mask is None:
            length = ops.cast(ops.shape(keys)[2], "float32")
        else:
            attended = ops.cast(ops.any(mask, axis=1), "float32")
            length = ops.reshape(ops.sum(attended, axis=-1), (-1, 1, 1, 1))
        return ops.sqrt(length + keys.shape[-1])

    def get_config(self):
        return {**super().get_config(), "length": self.length}
