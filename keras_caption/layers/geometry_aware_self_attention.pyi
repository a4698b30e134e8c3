# Written by docs/signatures.py.
from typing import Unpack

import keras

from keras_caption.arguments import KerasOptions
from keras_caption.layers.multi_head_attention import MultiHeadAttention

class GeometryAwareSelfAttention(MultiHeadAttention):
    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        *,
        bias: keras.Layer | None = None,
        kind: str = "query",
        geometry_dim: int = 80,
        signed: bool = False,
        dropout: float = 0.0,
        query_norm: str | keras.Layer | None = None,
        key_norm: str | keras.Layer | None = None,
        norm_affine: bool = False,
        norm_epsilon: float | None = None,
        score: keras.Layer | None = None,
        memory: keras.Layer | None = None,
        temperature: keras.Layer | None = None,
        gate: keras.Layer | None = None,
        output_projection: bool = True,
        value_projection: bool = True,
        query_projection: bool = True,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        output_initializer: str | keras.Initializer = "glorot_uniform",
        value_initializer: str | keras.Initializer | None = None,
        **kwargs: Unpack[KerasOptions],
    ) -> None: ...
