from typing import Unpack

import keras

from keras_caption.base.arguments import Count, Layers, ShareBelowOne
from keras_caption.inputs import Frames
from keras_caption.layers import (
    MatrixDense,
    SinePositionEncoding,
)
from keras_caption.models.attention import (
    AttentionOptions,
    Gate,
    Norms,
    OutputAreas,
    OutputTemperature,
    Score,
)
from keras_caption.models.blocks import BlockOptions, Blocks
from keras_caption.models.captioner import Captioner, CaptionerOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.models.transformer_blocks import TransformerBlocks
from keras_caption.text import Vocabulary


class VideoTransformerOptions(
    Norms,
    Score,
    OutputAreas,
    OutputTemperature,
    Gate,
    Blocks,
    CaptionerOptions,
    total=False,
):
    """Keywords of `VideoTransformer` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class VideoTransformer(Captioner):
    """Transformer over the frames of a video.

    A linear layer with ReLU brings features of frames to the model's size. Sinusoidal
    positions and dropout follow, and post-norm Transformer blocks encode the frames. A
    Transformer decoder generates the caption. *Normalized self-attention* (NG-SAN,
    section 6.1), `query_norm="instance"`, normalizes the queries of the encoder.

    The paper "directly uses Transformer", with one block in encoder and decoder, and
    has the other sizes of its image captioner. The Transformer encodes positions, and
    the image captioner does not: that this encoder has positions is our reading of the
    paper, and adding them after the linear layer is our choice.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        frame_dim: int, size of a frame's feature vector.
        num_layers: int, number of blocks of the encoder, and again of the decoder.
        model_dim: int, size of the hidden states.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        dropout: float, dropout rate of embeddings, branches and attention weights.
        positions: bool, whether positions of the frames are added to their features.
        **options: The options of `keras_caption.models.AttentionOptions`, without those
            of geometry, and of `BlockOptions`; and the keywords of `Captioner`.

    Call arguments:
        inputs: dict of `frames` and optionally a mask, see
            `keras_caption.inputs.Frames`; and `tokens`, see `Captioner`.

    Raises:
        InputError: If an option has a wrong value.

    Reference:
        Guo et al., "Normalized and Geometry-Aware Self-Attention Network for
        Image Captioning", CVPR 2020, section 6.1.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: Count | None = None,
        frame_dim: Count = 1000,
        num_layers: Layers = 1,
        model_dim: Count = 512,
        num_heads: Count = 8,
        feedforward_dim: Count = 2048,
        dropout: ShareBelowOne = 0.1,
        positions: bool = True,
        **options: Unpack[VideoTransformerOptions],
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
        inputs = Frames.symbolic(frame_dim)
        mask = Frames(inputs).memory_mask(inputs)
        x = MatrixDense(model_dim, "relu", dtype=dtype, name="frame_embedding")(
            inputs["frames"]
        )
        if positions:
            x = x + SinePositionEncoding(dtype=dtype)(x)
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        x = transformer.encode(x, num_layers, mask=mask)

        # === Decoder ===
        decoder_blocks = [*transformer.decoder_blocks(num_layers)]
        decoder = transformer.decoder(vocabulary_size, decoder_blocks, dropout)
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, **for_base(options))
