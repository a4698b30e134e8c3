from typing import Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor


@keras.saving.register_keras_serializable("keras_caption")
class AdditiveScore(keras.layers.Layer):
    """Scores of additive attention: a perceptron of query and key.

        e_tm = v^T tanh(q_t + k_m)

    for each head, where q and k are projected queries and keys. It takes memory for a
    vector per pair of query and key.

    Fills the `score` socket of `MultiHeadAttention`.

    Call arguments:
        queries: float `(batch, heads, T, key_dim)`.
        keys: float `(batch, heads, M, key_dim)`.

    Returns:
        float `(batch, heads, T, M)`.

    Reference:
        Bahdanau, Cho, Bengio, "Neural Machine Translation by Jointly Learning to Align
        and Translate", ICLR 2015.
    """

    def __init__(self, **kwargs: Unpack[KerasOptions]):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, queries_shape: Shape, keys_shape: Shape) -> None:
        self.vectors = self.add_weight((keys_shape[1], keys_shape[-1]), name="vectors")

    def call(
        self,
        queries: Float[Tensor, "batch heads T key_dim"],
        keys: Float[Tensor, "batch heads M key_dim"],
    ) -> Float[Tensor, "batch heads T M"]:
        # (batch, heads, T, M, key_dim)
        hidden = ops.tanh(ops.expand_dims(queries, 3) + ops.expand_dims(keys, 2))
        vectors = ops.cast(self.vectors, self.compute_dtype)  # v, (heads, key_dim)
        return ops.einsum("bhtmd,hd->bhtm", hidden, vectors)
