import keras
from jaxtyping import Float32

from keras_caption.base.arguments import Tensor
from keras_caption.layers.known_output import KnownOutput

# Logits of all positions; with `return_attention_scores`, attention weights too.
Decoded = (
    Float32[Tensor, "batch*C T vocabulary_size"]
    | tuple[
        Float32[Tensor, "batch*C T vocabulary_size"],
        Float32[Tensor, "batch num_heads C*T M"],
    ]
)


class TokenDecoder(KnownOutput):
    """Base of decoders: layers from tokens and a memory to logits of the next token.

    A subclass has `vocabulary_size`, and the methods `start` and `step`, see
    `keras_caption.models.TransformerDecoder`.

    Attributes:
        can_grow: bool, whether `start` takes `length=None`. Defaults to `False`.
    """

    can_grow = False

    def output_spec(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        return keras.KerasTensor((*inputs.shape, self.vocabulary_size), "float32")
