from typing import Unpack

import keras

from keras_caption.base.arguments import Count, Layers, ShareBelowOne
from keras_caption.inputs import Regions
from keras_caption.layers import (
    BoxEncoding,
    MatrixDense,
)
from keras_caption.models.attention import AttentionOptions, Mechanisms
from keras_caption.models.blocks import BlockOptions, Blocks
from keras_caption.models.captioner import Captioner, CaptionerOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.models.transformer_blocks import TransformerBlocks
from keras_caption.text import Vocabulary


class NGSANOptions(Mechanisms, Blocks, CaptionerOptions, total=False):
    """Keywords of `NGSAN` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class NGSAN(Captioner):
    """Normalized and geometry-aware self-attention network over image regions.

    A linear layer with ReLU and dropout brings region features to the model's size.
    Transformer encoder blocks, post-norm in the paper, refine the regions; their
    attention may be normalized (NSA), geometry-aware (GSA) or both. A Transformer
    decoder generates the caption. Without NSA and GSA the model is the paper's SAN.

    The norms apply to the encoder only, as in the paper: in the decoder the length of a
    caption changes token by token, and the statistics of a norm would change with it.
    `geometry` and `gate` apply to the encoder only, too. Areas and temperature, of
    other papers, apply to encoder and decoder.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        region_dim: int, size of a region's feature vector.
        num_layers: int, number of encoder blocks.
        decoder_layers: int, number of decoder blocks. Defaults to `num_layers`.
        model_dim: int, size of the hidden states.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        dropout: float, dropout rate of embeddings, branches and attention weights.
        region_dropout: float, dropout rate of projected regions. Defaults to `dropout`.
        **options: The options of `keras_caption.models.AttentionOptions` and
            `BlockOptions`, and the keywords of `Captioner`.

    Call arguments:
        inputs: dict of `regions`, `boxes`, which may be omitted without `geometry`,
            and optionally a mask, see `keras_caption.inputs.Regions`; and `tokens`,
            see `Captioner`.

    Raises:
        InputError: If an option has a wrong value.

    Reference:
        Guo et al., "Normalized and Geometry-Aware Self-Attention Network for
        Image Captioning", CVPR 2020.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: Count | None = None,
        region_dim: Count = 2048,
        num_layers: Layers = 4,
        decoder_layers: Layers | None = None,
        model_dim: Count = 512,
        num_heads: Count = 8,
        feedforward_dim: Count = 2048,
        dropout: ShareBelowOne = 0.1,
        region_dropout: ShareBelowOne | None = None,
        **options: Unpack[NGSANOptions],
    ):
        vocabulary_size = self.vocabulary_size = resolve_size(
            "vocabulary", vocabulary, vocabulary_size
        )
        dtype = options.get("dtype")
        check_heads(model_dim, num_heads)

        # === Attention ===
        mechanisms = AttentionOptions.of(options, dropout=dropout)
        transformer = TransformerBlocks(
            mechanisms=mechanisms,
            blocks=BlockOptions.of(options),
            model_dim=model_dim,
            num_heads=num_heads,
            feedforward_dim=feedforward_dim,
            dropout=dropout,
            dtype=dtype,
        )

        # === Encoder ===
        inputs = Regions.symbolic(region_dim)
        mask = Regions(inputs).memory_mask(inputs)
        x = MatrixDense(model_dim, "relu", dtype=dtype, name="region_embedding")(
            inputs["regions"]
        )
        if mechanisms.absolute_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])
        projected_dropout = dropout if region_dropout is None else region_dropout
        x = keras.layers.Dropout(projected_dropout, dtype=dtype)(x)
        x = transformer.encode(x, num_layers, mask=mask, boxes=inputs["boxes"])
        # Words have no boxes that could be related to those of regions: the memory
        # carries positions instead.
        if mechanisms.signed_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])

        # === Decoder ===
        decoder_blocks = transformer.decoder_blocks(decoder_layers or num_layers)
        decoder = transformer.decoder(vocabulary_size, decoder_blocks, dropout)
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, **for_base(options))
        # The encoder has the input `boxes` in any case, for one signature of all.
        self.ignored_inputs = () if mechanisms.geometry else ("boxes",)
