from typing import Unpack

import keras

from keras_caption.layers.multi_head_attention import (
    AttentionKeywords,
    MultiHeadAttention,
)


@keras.saving.register_keras_serializable("keras_caption")
class NormalizedSelfAttention(MultiHeadAttention):
    """Normalized self-attention (NSA).

    Multi-head self-attention whose queries, keys or both are normalized over the
    items, by default the queries, by instance normalization without gain and
    offset:

        S = softmax(IN(Q) K^T / sqrt(d)),    IN(Q) = (Q - mean(Q)) / std(Q)

    with mean and standard deviation of each channel over the valid items of one
    example. Adds no parameters to self-attention. The paper writes no biases in the
    projections and gives no epsilon: biases, and 1e-5 (`norm_epsilon`), are ours.

    Args:
        num_heads: int, number of heads.
        key_dim: int, size of a query and a key per head.
        **kwargs: Keywords of `MultiHeadAttention`, such as `key_norm`, `norm_affine`
            and `dropout`. `query_norm` defaults to `"instance"`.

    Call arguments:
        Those of `MultiHeadAttention`: `query`, float `(batch, N, dim)`, and
        `query_mask`, bool `(batch, N)`, True for valid items.

    Returns:
        As `MultiHeadAttention`, float `(batch, N, dim)`.

    Example:

    ```python
    attention = keras_caption.layers.NormalizedSelfAttention(num_heads=8, key_dim=64)
    outputs = attention(regions, query_mask=region_mask)
    ```

    Reference:
        Guo et al., CVPR 2020, section 4.1, Eq. 5 to 7.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        **kwargs: Unpack[AttentionKeywords],
    ):
        kwargs.setdefault("query_norm", "instance")
        super().__init__(num_heads, key_dim, **kwargs)
