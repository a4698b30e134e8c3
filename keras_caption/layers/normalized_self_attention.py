import keras

from keras_caption.layers.multi_head_attention import MultiHeadAttention


@keras.saving.register_keras_serializable("keras_caption")
class NormalizedSelfAttention(MultiHeadAttention):
    """Normalized self-attention (NSA).

    Multi-head self-attention whose queries, keys or both are normalized over the
    items, by default the queries, by instance normalization without gain and
    offset:

        S = softmax(IN(Q) K^T / sqrt(d)),    IN(Q) = (Q - mean(Q)) / std(Q)

    with mean and deviation taken over the real items of one example, channel by
    channel. Adds no parameters to self-attention.

    Args:
        num_heads: Number of heads.
        key_dim: Size of a query and a key per head.
        query_norm, key_norm: `None`, `"instance"`, `"batch"`, `"layer"` or a layer.
        **kwargs: Of `MultiHeadAttention`, such as `norm_affine` and `dropout`.

    Call arguments:
        As `MultiHeadAttention`: `query` `(batch, N, dim)` and `query_mask`, bool
        `(batch, N)`, True where an item is real.

    Returns:
        `(batch, N, dim)`.

    Example:

    ```python
    attention = keras_caption.layers.NormalizedSelfAttention(num_heads=8, key_dim=64)
    outputs = attention(regions, query_mask=region_mask)
    ```

    Reference:
        Guo et al., CVPR 2020, section 4.1, Eq. 5 to 7.
    """

    def __init__(self, num_heads, key_dim, *, query_norm="instance", **kwargs):
        super().__init__(num_heads, key_dim, query_norm=query_norm, **kwargs)
