from typing import Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor


@keras.saving.register_keras_serializable("keras_caption")
class ProductScore(keras.layers.Layer):
    """Scores of plain dot-product attention, without a temperature.

        e_tm = q_t^T k_m

    for each head, where q and k are projected queries and keys.

    Fills the `score` socket of `MultiHeadAttention`.

    Call arguments:
        queries: float `(batch, heads, T, key_dim)`.
        keys: float `(batch, heads, M, key_dim)`.

    Returns:
        float `(batch, heads, T, M)`.

    Reference:
        Luong, Pham, Manning, "Effective Approaches to Attention-based Neural Machine
        Translation", EMNLP 2015.
    """

    def __init__(self, **kwargs: Unpack[KerasOptions]):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, queries_shape: Shape, keys_shape: Shape) -> None:
        """Creates no weights. Keras's own `build` takes the shape of one input only."""

    def call(
        self,
        queries: Float[Tensor, "batch heads T key_dim"],
        keys: Float[Tensor, "batch heads M key_dim"],
    ) -> Float[Tensor, "batch heads T M"]:
        return ops.matmul(queries, ops.transpose(keys, (0, 1, 3, 2)))
