from typing import Unpack

import keras
from jaxtyping import Bool, Float, Float32
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor
from keras_caption.base.configs import ConfiguredLayer


@keras.saving.register_keras_serializable("keras_caption")
class LengthTemperature(ConfiguredLayer):
    """A temperature that grows with the number of keys.

        sqrt(length + key_dim)

    instead of `sqrt(key_dim)`: the more keys, the flatter the softmax over them
    (Eq. 2). The paper does not say which masked keys count. Here, a key that a causal
    mask hides from some queries counts; padding does not, so that captions do not
    depend on the other examples of a batch.

    A decoder's cache holds only the keys of earlier steps. Give its self-attention a
    constant `length`, so that cached steps agree with teacher forcing.

    Fills the `temperature` socket of `MultiHeadAttention`.

    Args:
        length: int, number of keys to assume. Defaults to `None`, the number of keys
            that any query may attend to.

    Call arguments:
        keys: float `(batch, heads, M, key_dim)`.
        mask: bool, broadcastable to `(batch, T, M)`, True where a query may attend to
            a key. Defaults to `None`, everywhere.

    Returns:
        float32, a scalar or, with a mask, `(batch, 1, 1, 1)`, where `batch` is the
        batch size of the mask, which may be 1.

    Reference:
        Springenberg et al., "Image-to-Text Transduction with Spatial
        Self-Attention", ESANN 2018, section 2.3.
    """

    def __init__(self, length: int | None = None, **kwargs: Unpack[KerasOptions]):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.length = length

    def call(
        self,
        keys: Float[Tensor, "batch heads M key_dim"],
        mask: Bool[Tensor, "#batch #T M"] | None = None,
    ) -> Float32[Tensor, ""] | Float32[Tensor, "batch 1 1 1"]:
        if self.length is not None:
            length = ops.cast(self.length, "float32")
        elif mask is None:
            length = ops.cast(ops.shape(keys)[2], "float32")
        else:
            # A key counts if any query may attend to it: (batch, M).
            attended = ops.cast(ops.any(mask, axis=1), "float32")
            length = ops.reshape(ops.sum(attended, axis=-1), (-1, 1, 1, 1))
        return ops.sqrt(length + keys.shape[-1])
