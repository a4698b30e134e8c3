import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import keras

from keras_caption.layers import (
    MultiHeadAttention,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from keras_caption.models.attention import AttentionOptions, make_attention
from keras_caption.models.blocks import BlockOptions
from keras_caption.models.transformer_decoder import TransformerDecoder


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransformerBlocks:
    """Makes the blocks of an encoder, and the decoder that reads its memory.

    Attributes:
        mechanisms: `AttentionOptions` of the encoder's self-attention. The options of
            the decoder are derived from them.
        blocks: `BlockOptions`.
        model_dim: int, size of the hidden states.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        dropout: float, dropout rate of branches.
        dtype: Keras dtype policy of the layers.
    """

    mechanisms: AttentionOptions
    blocks: BlockOptions
    model_dim: int
    num_heads: int
    feedforward_dim: int
    dropout: float
    dtype: Any

    def encode(
        self, x: keras.KerasTensor, number: int, **inputs: Any
    ) -> keras.KerasTensor:
        """Encodes a symbolic tensor by blocks and, if they are pre-norm, a final norm.

        Args:
            x: Symbolic tensor `(batch, N, model_dim)`.
            number: int, number of blocks.
            **inputs: Arguments `mask` and `boxes` of
                `keras_caption.layers.TransformerEncoderBlock`.
        """
        for i in range(number):
            block = TransformerEncoderBlock(
                self._attention(self.mechanisms, i),
                **self._options(),
                name=f"encoder_{i}",
            )
            x = block(x, **inputs)
        norm = self.blocks.final_norm("encoded", self.dtype)
        return x if norm is None else norm(x)

    def decoder_blocks(self, number: int) -> Iterator[TransformerDecoderBlock]:
        """Yields blocks, each made when it is requested.

        Initializers take their seeds in the order in which layers are made. A caller
        decides by it whether the blocks come before or after the embedding.
        """
        output_options = self.mechanisms.for_output()
        memory_options = self.mechanisms.for_memory()
        for i in range(number):
            yield TransformerDecoderBlock(
                self._attention(output_options, i),
                self._attention(memory_options, i),
                **self._options(),
            )

    def decoder(
        self,
        vocabulary_size: int,
        blocks: Iterable[TransformerDecoderBlock],
        dropout: float,
        **options: Any,
    ) -> TransformerDecoder:
        """Makes the decoder of a model, with a final norm if its blocks are pre-norm.

        Args:
            vocabulary_size: int, number of tokens.
            blocks: Iterable of blocks, from `decoder_blocks`.
            dropout: float, dropout rate of embeddings.
            **options: Further arguments of `TransformerDecoder`.
        """
        return TransformerDecoder(
            vocabulary_size,
            self.model_dim,
            blocks,
            dropout,
            final_norm=self.blocks.final_norm("decoded", self.dtype),
            dtype=self.dtype,
            name="decoder",
            **options,
        )

    def _options(self):
        return {
            "feedforward_dim": self.feedforward_dim,
            "dropout": self.dropout,
            "dtype": self.dtype,
            **self.blocks.for_block(),
        }

    def _attention(self, mechanisms: AttentionOptions, i: int) -> MultiHeadAttention:
        return make_attention(
            self.num_heads,
            self.model_dim // self.num_heads,
            mechanisms.in_block(i),
            dtype=self.dtype,
            **self.blocks.kernels.of_attention,
        )
