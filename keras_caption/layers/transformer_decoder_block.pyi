# Written by docs/signatures.py.
from typing import Any, Unpack

import keras
from jaxtyping import Bool, Float, Float32, Int

from keras_caption.arguments import KerasOptions, Shape, Tensor
from keras_caption.layers.transformer_block import TransformerBlock

class TransformerDecoderBlock(TransformerBlock):
    cross_attention: Any
    cross_dropout: Any
    cross_norm: Any
    feedforward: Any
    self_attention: Any
    self_dropout: Any
    self_norm: Any

    def __init__(
        self,
        self_attention: keras.Layer,
        cross_attention: keras.Layer,
        feedforward_dim: int,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        *,
        norm_position: str = "post",
        norm: str = "layer",
        norm_epsilon: float = 0.001,
        activation: str = "relu",
        activation_dropout: float = 0.0,
        **kwargs: Unpack[KerasOptions],
    ) -> None: ...
    def build(self, inputs_shape: Shape, memory_shape: Shape) -> None: ...
    def call(
        self,
        inputs: Float[Tensor, "batch*C T dim"],
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
        return_attention_scores: bool = False,
    ) -> (
        Float[Tensor, "batch*C T dim"]
        | tuple[
            Float[Tensor, "batch*C T dim"], Float32[Tensor, "batch num_heads C*T M"]
        ]
    ): ...
    def read_memory(
        self,
        memory: Float[Tensor, "batch M memory_dim"],
        memory_mask: Bool[Tensor, "batch M"] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None]: ...
    def empty_cache(self, batch_size: int, length: int) -> tuple[Tensor, Tensor]: ...
    def step(
        self,
        inputs: Float[Tensor, "batch*C 1 dim"],
        items: tuple[Tensor, Tensor, Tensor | None],
        cache: tuple[Tensor, Tensor],
        index: Int[Tensor, ""],
    ) -> tuple[Float[Tensor, "batch*C 1 dim"], tuple[Tensor, Tensor]]: ...
    def get_config(self) -> dict[str, Any]: ...
