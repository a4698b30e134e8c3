from typing import Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.sockets import size_of


@keras.saving.register_keras_serializable("keras_caption")
class AttentionOnAttention(ConfiguredLayer):
    """Attention on attention (AoA): gates attended vectors by their queries.

        I = W_i [v; q] + b_i                   (Eq. 3, the information vector)
        G = sigmoid(W_g [v; q] + b_g)          (Eq. 4, the attention gate)
        AoA(v, q) = G * I                      (Eq. 5)

    with q the query and v the attended vector. In the paper q is the projected query
    (Eq. 6, 7 and 14); here, as in the released code, it is the query before its
    projection. Fills the `gate` socket of `MultiHeadAttention`, with
    `output_projection=False`: W_i takes its place.

    Args:
        dropout: float, dropout rate of [v; q]. Defaults to 0.

    Call arguments:
        attended: v, float `(..., value_dim)`.
        query: q, float `(..., dim)`.

    Returns:
        float `(..., dim)`.

    Example:

    ```python
    attention = keras_caption.layers.MultiHeadAttention(
        num_heads=8,
        key_dim=128,
        gate=keras_caption.layers.AttentionOnAttention(),
        output_projection=False,
    )
    ```

    Reference:
        Huang et al., "Attention on Attention for Image Captioning", ICCV 2019, section
        3.1.
    """

    def __init__(self, dropout: float = 0.0, **kwargs: Unpack[KerasOptions]):
        super().__init__(**kwargs)
        self.dropout = dropout
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, attended_shape: Shape, query_shape: Shape) -> None:
        dim = size_of(query_shape)
        self.dense = MatrixDense(
            2 * dim, dtype=self.dtype_policy, name="information_and_gate"
        )
        self.dense.build((*query_shape[:-1], size_of(attended_shape) + dim))

    def call(
        self, attended: Float[Tensor, "... value_dim"], query: Float[Tensor, "... dim"]
    ) -> Float[Tensor, "... dim"]:
        # W_i and W_g are one matrix, so that [v; q] is multiplied once.
        both = ops.concatenate([attended, query], axis=-1)
        information, gate = ops.split(self.dense(self.dropout_layer(both)), 2, axis=-1)
        return information * ops.sigmoid(gate)

    def compute_output_shape(self, attended_shape: Shape, query_shape: Shape) -> Shape:
        return query_shape
