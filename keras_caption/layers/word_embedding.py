from typing import Unpack

import keras
from jaxtyping import Float, Int
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer


@keras.saving.register_keras_serializable("keras_caption")
class WordEmbedding(ConfiguredLayer):
    """Token embeddings, usually scaled by `sqrt(dim)` as in a Transformer.

    A call scales the whole table before the look-up: the gradient is then one dense
    tensor. The gradient of a plain look-up is sparse and has an entry for every
    occurrence of a token, which optimizers with moments treat as separate tokens.
    Where no gradient is needed, as in the steps of a search, `look_up` is faster,
    since it scales only the embeddings that it returns.

    Args:
        vocabulary_size: int, number of tokens.
        dim: int, size of an embedding.
        scaled: bool, whether embeddings are multiplied by `sqrt(dim)`, which
            multiplies the effective learning rate too. Pretrained embeddings should
            not be scaled. Defaults to `True`.

    Call arguments:
        tokens: int `(...)`.

    Returns:
        float `(..., dim)`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        dim: int,
        scaled: bool = True,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.dim = dim
        self.scaled = scaled
        self.scale = dim**0.5 if scaled else 1.0

    def build(self, tokens_shape: Shape) -> None:
        self.embeddings = self.add_weight(
            (self.vocabulary_size, self.dim),
            # Scaled embeddings then begin with a standard deviation of 1.
            initializer=keras.initializers.RandomNormal(stddev=1 / self.scale),
            name="embeddings",
        )

    def call(self, tokens: Int[Tensor, "..."]) -> Float[Tensor, "... dim"]:
        return ops.take(self.embeddings * self.scale, tokens, axis=0)

    def look_up(self, tokens: Int[Tensor, "..."]) -> Float[Tensor, "... dim"]:
        """Returns the embeddings of tokens as a call does, with a sparse gradient."""
        rows = ops.cast(ops.take(self.embeddings, tokens, axis=0), self.compute_dtype)
        return rows * self.scale

    def output_table(self) -> Float[Tensor, "dim vocabulary_size"]:
        """Returns the embeddings as columns, for tied output weights.

        The transposition takes time: a decoding loop calls this once, before its steps.
        """
        return ops.transpose(ops.cast(self.embeddings, self.compute_dtype))

    def compute_output_shape(self, tokens_shape: Shape) -> Shape:
        return (*tokens_shape, self.dim)
