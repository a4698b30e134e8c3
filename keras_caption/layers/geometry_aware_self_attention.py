from typing import Unpack

import keras

from keras_caption.layers.geometry_bias import GEOMETRY_DIM, GeometryBias
from keras_caption.layers.multi_head_attention import (
    AttentionKeywords,
    MultiHeadAttention,
)


@keras.saving.register_keras_serializable("keras_caption")
class GeometryAwareSelfAttention(MultiHeadAttention):
    """Geometry-aware self-attention (GSA).

    Multi-head self-attention over regions that adds a bias to every score, computed
    from the relative position and size of the two regions' boxes:

        E = Q K^T / sqrt(d) + phi(Q', K', G)                  (Eq. 10)

    `keras_caption.layers.GeometryBias` implements the forms of phi. Add
    `query_norm="instance"` for the combination of NG-SAN.

    Args:
        num_heads: int, number of heads.
        key_dim: int, size of a query and a key per head.
        kind: str, what the bias depends on besides the geometry:
            `"content_independent"`, `"query"`, `"key"`, or several joined by `"+"`.
            Defaults to `"query"`.
        geometry_dim: int, size of the geometry vector G_ij (d_g), which the paper
            leaves open. Defaults to 80, see `GeometryBias`.
        signed: bool, whether the geometry tells left from right and above from below,
            which the paper's does not. Defaults to `False`.
        **kwargs: Keywords of `MultiHeadAttention`, such as `query_norm` and `dropout`.
            `bias` defaults to a `GeometryBias` of the three arguments above.

    Call arguments:
        Those of `MultiHeadAttention`: `query`, float `(batch, N, dim)`, `query_mask`,
        bool `(batch, N)`, and `boxes`, float `(batch, N, 4)`, x1, y1, x2, y2 divided
        by the image's width and height.

    Returns:
        As `MultiHeadAttention`, float `(batch, N, dim)`.

    Example:

    ```python
    attention = keras_caption.layers.GeometryAwareSelfAttention(8, 64, kind="query")
    outputs = attention(regions, boxes=boxes, query_mask=region_mask)
    ```

    Reference:
        Guo et al., CVPR 2020, section 4.2, Eq. 8 to 13.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        *,
        kind: str = "query",
        geometry_dim: int = GEOMETRY_DIM,
        signed: bool = False,
        **kwargs: Unpack[AttentionKeywords],
    ):
        if kwargs.get("bias") is None:
            kwargs["bias"] = GeometryBias(
                num_heads, kind, geometry_dim, signed, dtype=kwargs.get("dtype")
            )
        super().__init__(num_heads, key_dim, **kwargs)
