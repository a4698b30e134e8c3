# Written by docs/signatures.py.
from typing import Any

import keras
from jaxtyping import Bool, Float, Float32

from keras_caption.arguments import Shape, Tensor
from keras_caption.layers.known_output import KnownOutput
from keras_caption.layers.transformer_block import TransformerBlock

class TransformerEncoderBlock(KnownOutput, TransformerBlock):
    attention: Any
    attention_dropout: Any
    attention_norm: Any
    feedforward: Any
    supports_masking: Any

    def __init__(
        self,
        attention: keras.Layer,
        feedforward_dim: int,
        dropout: float = 0.1,
        kernel_initializer: str | keras.Initializer = "glorot_uniform",
        *,
        name: Any = None,
        **kwargs: Any,
    ) -> None: ...
    def build(self, inputs_shape: Shape) -> None: ...
    def call(
        self,
        inputs: Float[Tensor, "batch N dim"],
        mask: Bool[Tensor, "batch N"] | None = None,
        boxes: Float[Tensor, "batch N 4"] | None = None,
        return_attention_scores: bool = False,
    ) -> (
        Float[Tensor, "batch N dim"]
        | tuple[Float[Tensor, "batch N dim"], Float32[Tensor, "batch num_heads N N"]]
    ): ...
    def get_config(self) -> dict[str, Any]: ...
