import dataclasses
import functools
from typing import Literal, Unpack

import keras

from keras_caption.base.arguments import Count, Layers, ShareBelowOne
from keras_caption.base.errors import InputError
from keras_caption.inputs import Regions
from keras_caption.layers import (
    BoxEncoding,
    MatrixDense,
    RefiningBlock,
    UnbiasedLayerNormalization,
)
from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.attention import (
    AttentionOptions,
    EncoderMechanisms,
    make_attention,
)
from keras_caption.models.captioner import Captioner, CaptionerOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.text import Vocabulary


class AoANetOptions(EncoderMechanisms, CaptionerOptions, total=False):
    """Keywords of `AoANet` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class AoANet(Captioner):
    """Attention on attention network over image regions.

    A linear layer with ReLU and dropout brings region features to the model's size.
    Blocks of self-attention with attention on attention (AoA) refine them, and an LSTM
    with AoA generates the caption, see `AoADecoder`. The mechanisms of the other papers
    apply to the refining blocks; areas, temperature and score apply to the decoder too.
    With the additive score the decoder is the single-head decoder of the released code,
    whose values are the regions without a projection.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        region_dim: int, size of a region's feature vector.
        num_layers: int, number of refining blocks.
        model_dim: int, size of refined regions and of the LSTM.
        embedding_dim: int, size of a token's embedding.
        num_heads: int, attention heads of the refining blocks; divides `model_dim`.
        refining: str, what refines regions: `"aoa"`, `"attention"`, or `None`. With
            `"attention"`, feed-forward layers replace AoA (Figure 6).
        feedforward_dim: int, inner size of the feed-forward layers.
        context: str, how the decoder computes its context: `"aoa"`, `"linear"`,
            `"lstm"` or `"lstm_aoa"`. See `AoADecoder` (Figure 7).
        decoder_heads: int, attention heads of the decoder; divides `model_dim`.
        dropout: float, dropout rate of embeddings and output.
        context_dropout: float, dropout rate of the context that the LSTM reads.
            Defaults to `dropout`; the released code has 0 without refining blocks.
        refining_dropout: float, dropout rate of the refining blocks' branches, and of
            all attention weights.
        aoa_dropout: float, dropout rate of the inputs of AoA in the refining blocks.
        **options: The options of `keras_caption.models.AttentionOptions`, without those
            of areas and lengths of the output, and the keywords of `Captioner`. `gate`
            is for `refining="attention"`: it gates the attention, and the feed-forward
            layers stay. The decoder's one layer attends to areas unless `area_layers`
            is 0.

    Call arguments:
        inputs: dict of `regions`, `boxes`, which may be omitted without `geometry`,
            and optionally a mask, see `keras_caption.inputs.Regions`; and `tokens`,
            see `Captioner`.

    Raises:
        InputError: If an option has a wrong value, or excludes another option.

    Reference:
        Huang et al., "Attention on Attention for Image Captioning", ICCV 2019.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: Count | None = None,
        region_dim: Count = 2048,
        num_layers: Layers = 6,
        model_dim: Count = 1024,
        embedding_dim: Count = 1024,
        num_heads: Count = 8,
        refining: Literal["attention", "aoa"] | None = "aoa",
        feedforward_dim: Count = 2048,
        context: str = "aoa",
        decoder_heads: Count = 8,
        dropout: ShareBelowOne = 0.5,
        refining_dropout: ShareBelowOne = 0.1,
        aoa_dropout: ShareBelowOne = 0.3,
        context_dropout: ShareBelowOne | None = None,
        **options: Unpack[AoANetOptions],
    ):
        vocabulary_size = self.vocabulary_size = resolve_size(
            "vocabulary", vocabulary, vocabulary_size
        )
        dtype = options.get("dtype")
        check_heads(model_dim, decoder_heads)
        if refining:
            check_heads(model_dim, num_heads)

        # === Attention ===
        mechanisms = AttentionOptions.of(
            options, dropout=refining_dropout, gate_dropout=aoa_dropout
        )
        region_options = mechanisms
        if refining == "aoa" and mechanisms.gate is None:
            region_options = dataclasses.replace(mechanisms, gate="aoa")
        self_attention_options = (
            mechanisms.query_norm,
            mechanisms.key_norm,
            mechanisms.relative_geometry,
            mechanisms.gate,
        )
        if any(self_attention_options) and not refining:
            raise InputError(
                "refining=None leaves no self-attention for query_norm, key_norm, a "
                "relative geometry or gate: one of them was given."
            )

        # === Encoder ===
        inputs = Regions.symbolic(region_dim)
        mask = Regions(inputs).memory_mask(inputs)
        x = MatrixDense(model_dim, "relu", dtype=dtype, name="region_embedding")(
            inputs["regions"]
        )
        if region_options.absolute_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        for i in range(num_layers if refining else 0):
            x = RefiningBlock(
                make_attention(
                    num_heads,
                    model_dim // num_heads,
                    region_options.in_block(i),
                    dtype=dtype,
                ),
                None if refining == "aoa" else feedforward_dim,
                refining_dropout,
                dtype=dtype,
                name=f"refining_{i}",
            )(x, mask=mask, boxes=inputs["boxes"])
        if refining:  # the blocks normalize their inputs, not their sum
            x = UnbiasedLayerNormalization(dtype=dtype, name="refined")(x)
        # Words have no boxes that could be related to those of regions: the memory
        # carries positions instead.
        if mechanisms.signed_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])

        # === Decoder ===
        decoder = AoADecoder(
            vocabulary_size,
            model_dim,
            embedding_dim,
            functools.partial(
                make_attention,
                decoder_heads,
                model_dim // decoder_heads,
                region_options.for_memory().in_block(0),
                # AoA or a linear layer follows attention, as in the paper. The released
                # code's additive attention projects no values either.
                output_projection=False,
                value_projection=mechanisms.score is None,
                dtype=dtype,
            ),
            context,
            dropout,
            context_dropout=context_dropout,
            dtype=dtype,
            name="decoder",
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, **for_base(options))
        # The encoder has the input `boxes` in any case, for one signature of all.
        self.ignored_inputs = () if mechanisms.geometry else ("boxes",)
