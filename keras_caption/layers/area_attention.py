import keras

from keras_caption.layers.area_memory import AreaMemory
from keras_caption.layers.multi_head_attention import MultiHeadAttention


@keras.saving.register_keras_serializable("keras_caption")
class AreaAttention(MultiHeadAttention):
    """Attention to areas of a memory: runs of items, or rectangles of a grid.

    Multi-head attention whose `memory` socket is an `AreaMemory`, by default of runs
    of up to three items, plain means and sums.

    Args:
        num_heads: Number of heads.
        key_dim: Size of a query and a key per head.
        memory: `AreaMemory`.
        **kwargs: Of `MultiHeadAttention`.

    Call arguments:
        As `MultiHeadAttention`: `query` `(batch, T, dim)`, `value` `(batch, L, dim)`.

    Returns:
        `(batch, T, dim)`.

    Example:

    ```python
    areas = keras_caption.layers.AreaMemory(max_height=3, max_width=3, grid_width=8)
    attention = keras_caption.layers.AreaAttention(8, 64, memory=areas)
    outputs = attention(queries, grid)  # grid: (batch, 64, dim), row by row
    ```

    Reference:
        Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019.
    """

    def __init__(self, num_heads, key_dim, *, memory=None, **kwargs):
        memory = memory or AreaMemory(dtype=kwargs.get("dtype"))
        super().__init__(num_heads, key_dim, memory=memory, **kwargs)
