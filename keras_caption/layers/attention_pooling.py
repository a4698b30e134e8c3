from typing import Unpack

import keras
from jaxtyping import Bool, Float, Float32
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.layers.matrix_dense import MatrixDense
from keras_caption.layers.multi_head_attention import MASKED_SCORE


@keras.saving.register_keras_serializable("keras_caption")
class AttentionPooling(ConfiguredLayer):
    """Reduces items to one vector: their sum by attention weights, projected.

        a = softmax(W_2 Dropout(ReLU(W_1 x_i + b_1)) + b_2)    over the valid items i
        y = W sum_i a_i x_i + b

    Without a valid item, the weights are uniform. It is "AttFlat" of MCAN's released
    code, with a single glimpse.

    Args:
        hidden_dim: int, size of the hidden layer of the weights.
        output_dim: int, size of the result.
        dropout: float, dropout rate of this hidden layer. Defaults to 0.1.

    Call arguments:
        inputs: float `(batch, N, dim)`.
        mask: bool `(batch, N)`, True for valid items. Defaults to `None`, all valid.
        return_attention_scores: bool, whether to return the weights too.

    Returns:
        float `(batch, output_dim)`; with `return_attention_scores`, a pair of it and
        the weights, float32 `(batch, N)`.

    Reference:
        Yu et al., "Deep Modular Co-Attention Networks for Visual Question
        Answering", CVPR 2019.
    """

    def __init__(
        self,
        hidden_dim: int,
        output_dim: int,
        dropout: float = 0.1,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.hidden_dim = hidden_dim
        self.output_dim = output_dim
        self.dropout = dropout
        policy = self.dtype_policy
        self.hidden_dense = MatrixDense(hidden_dim, "relu", dtype=policy, name="hidden")
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=policy)
        self.score_dense = MatrixDense(1, dtype=policy, name="score")
        self.output_dense = keras.layers.Dense(output_dim, dtype=policy, name="output")

    def build(self, inputs_shape: Shape) -> None:
        self.hidden_dense.build(inputs_shape)
        self.score_dense.build((*inputs_shape[:-1], self.hidden_dim))
        self.output_dense.build((inputs_shape[0], inputs_shape[-1]))

    def call(
        self,
        inputs: Float[Tensor, "batch N dim"],
        mask: Bool[Tensor, "batch N"] | None = None,
        return_attention_scores: bool = False,
    ) -> (
        Float[Tensor, "batch output_dim"]
        | tuple[Float[Tensor, "batch output_dim"], Float32[Tensor, "batch N"]]
    ):
        scores = self.score_dense(self.dropout_layer(self.hidden_dense(inputs)))
        # (batch, N), in float32, which holds MASKED_SCORE.
        scores = ops.cast(ops.squeeze(scores, -1), "float32")
        if mask is not None:
            scores = ops.where(mask, scores, MASKED_SCORE)
        weights = ops.softmax(scores)
        # (batch, 1, N) times (batch, N, dim): the weighted sum as a matrix product.
        row = ops.expand_dims(ops.cast(weights, inputs.dtype), 1)
        pooled = self.output_dense(ops.squeeze(ops.matmul(row, inputs), 1))
        return (pooled, weights) if return_attention_scores else pooled

    def compute_mask(self, inputs: Tensor, previous_mask: Tensor | None = None) -> None:
        return None
