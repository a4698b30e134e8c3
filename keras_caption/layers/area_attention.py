from typing import Unpack

import keras

from keras_caption.layers.area_memory import AreaMemory
from keras_caption.layers.multi_head_attention import (
    AttentionKeywords,
    MultiHeadAttention,
)


@keras.saving.register_keras_serializable("keras_caption")
class AreaAttention(MultiHeadAttention):
    """Attention to areas of a memory: runs of items, or rectangles of a grid.

    Multi-head attention whose `memory` socket is an `AreaMemory`.

    Args:
        num_heads: int, number of heads.
        key_dim: int, size of a query and a key per head.
        **kwargs: Keywords of `MultiHeadAttention`. `memory` is an `AreaMemory`. It
            defaults to runs of up to three items, whose keys are means and whose values
            are sums.

    Call arguments:
        Those of `MultiHeadAttention`: `query`, float `(batch, T, dim)`, `value`,
        float `(batch, L, dim)`, ...

    Returns:
        As `MultiHeadAttention`, float `(batch, T, dim)`.

    Example:

    ```python
    areas = keras_caption.layers.AreaMemory(max_height=3, max_width=3, grid_width=8)
    attention = keras_caption.layers.AreaAttention(8, 64, memory=areas)
    outputs = attention(queries, grid)  # grid: (batch, 64, dim), row by row
    ```

    Reference:
        Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        **kwargs: Unpack[AttentionKeywords],
    ):
        if kwargs.get("memory") is None:
            kwargs["memory"] = AreaMemory(dtype=kwargs.get("dtype"))
        super().__init__(num_heads, key_dim, **kwargs)
