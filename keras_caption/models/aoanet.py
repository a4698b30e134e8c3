import functools
from typing import Any

import keras

from keras_caption.errors import InputError
from keras_caption.inputs import Regions
from keras_caption.layers import (
    BoxEncoding,
    MatrixDense,
    RefiningBlock,
    UnbiasedLayerNormalization,
)
from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.attention import AttentionOptions, make_attention
from keras_caption.models.captioner import Captioner
from keras_caption.models.sizes import (
    check_heads,
    check_sizes,
    resolve_size,
)
from keras_caption.text import Vocabulary

REFININGS = (None, "attention", "aoa")


@keras.saving.register_keras_serializable("keras_caption")
class AoANet(Captioner):
    """Attention on attention network over image regions.

    A linear layer with ReLU and dropout brings region features to the model's
    size; blocks of self-attention with attention on attention refine them; an LSTM
    with another one generates the caption, see `AoADecoder`. The mechanisms of the
    other papers apply to the refining blocks; areas and temperature to the decoder
    too.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        region_dim: int, size of a region's feature vector.
        num_layers: int, number of refining blocks.
        model_dim: int, size of refined regions and of the LSTM.
        embedding_dim: int, size of a token's embedding.
        num_heads: int, attention heads of the refining blocks; divides `model_dim`.
        refining: `"aoa"`; `"attention"`, with feed-forward layers in place of AoA
            (Figure 6); or `None`, for no refining.
        feedforward_dim: int, inner size of these feed-forward layers.
        context: str, of `AoADecoder` (Figure 7).
        decoder_heads: int, attention heads of the decoder; divides `model_dim`.
        dropout: float, dropout rate of embeddings, fed-back context and output.
        refining_dropout: float, dropout rate of the refining blocks' branches, and of
            all attention weights.
        aoa_dropout: float, dropout rate of what AoA in the refining blocks reads.
        query_norm, key_norm: `None`, `"instance"`, `"batch"` or `"layer"`: how
            queries (keys) of the refining blocks are normalized, as in `NGSAN`.
        norm_affine: bool, whether these norms learn a gain and an offset.
        geometry: `None`, or kinds of geometry joined by `"+"`, as in `NGSAN`.
        geometry_dim: int, size of a geometry vector per head.
        signed_geometry: bool, whether a relative geometry tells left from right and
            above from below, which the paper's does not. The decoder, whose words
            have no boxes, then attends to regions with an encoding of their boxes
            added.
        gate: `None`, or `"aoa"`: gates `refining="attention"` too, which keeps its
            feed-forward layers.
        image_area: int, regions of the largest area to attend to, a run of regions in
            the order of the batch; 1 for plain attention. Its geometric bias is the
            mean of its regions'.
        combined_features: bool, whether the keys of areas are the combined features
            of the area paper's Eq. 9, not the means of Eq. 3.
        area_layers: int, refining blocks that attend to areas; the decoder's one
            layer does unless it is 0.
        temperature: `None`, or `"length"`: scores are divided by `sqrt(length + d)`,
            as in `GridTransformer`.

    Call arguments:
        inputs: dict of `regions`, `boxes`, which may be omitted without `geometry`,
            and optionally a mask, see `keras_caption.inputs.Regions`; and `tokens`,
            see `Captioner`.

    Raises:
        InputError: If an option has no such value, or excludes another.

    Reference:
        Huang et al., "Attention on Attention for Image Captioning", ICCV 2019.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        region_dim: int = 2048,
        num_layers: int = 6,
        model_dim: int = 1024,
        embedding_dim: int = 1024,
        num_heads: int = 8,
        refining: str | None = "aoa",
        feedforward_dim: int = 2048,
        context: str = "aoa",
        decoder_heads: int = 8,
        dropout: float = 0.5,
        refining_dropout: float = 0.1,
        aoa_dropout: float = 0.3,
        query_norm: str | None = None,
        key_norm: str | None = None,
        norm_affine: bool = False,
        geometry: str | None = None,
        geometry_dim: int = 64,
        signed_geometry: bool = False,
        gate: str | None = None,
        image_area: int = 1,
        combined_features: bool = False,
        area_layers: int = 2,
        temperature: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ):
        check_sizes(locals())
        dtype = keras.dtype_policies.get(dtype)
        vocabulary_size = resolve_size("vocabulary", vocabulary, vocabulary_size)
        if refining not in REFININGS:
            raise InputError(
                f"`refining` must be one of {REFININGS}. Received: {refining!r}"
            )
        check_heads(model_dim, decoder_heads)
        if refining:
            check_heads(model_dim, num_heads)
        of_regions = AttentionOptions(
            dropout=refining_dropout,
            query_norm=query_norm,
            key_norm=key_norm,
            norm_affine=norm_affine,
            geometry=geometry,
            geometry_dim=geometry_dim,
            signed_geometry=signed_geometry,
            area=image_area,
            combined_features=combined_features,
            area_layers=area_layers,
            temperature=temperature,
            gate=gate or ("aoa" if refining == "aoa" else None),
            gate_dropout=aoa_dropout,
        )
        of_refining = query_norm, key_norm, of_regions.relative_geometry, gate
        if any(of_refining) and not refining:
            raise InputError(
                "refining=None leaves no self-attention for query_norm, key_norm, a "
                "relative geometry or gate: one of them was given."
            )
        inputs = Regions.symbolic(region_dim)
        mask = Regions(inputs).memory_mask(inputs)
        x = MatrixDense(model_dim, "relu", dtype=dtype, name="region_embedding")(
            inputs["regions"]
        )
        if of_regions.absolute_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        for i in range(num_layers if refining else 0):
            x = RefiningBlock(
                make_attention(
                    num_heads,
                    model_dim // num_heads,
                    of_regions.in_block(i),
                    dtype=dtype,
                ),
                None if refining == "aoa" else feedforward_dim,
                refining_dropout,
                dtype=dtype,
                name=f"refining_{i}",
            )(x, mask=mask, boxes=inputs["boxes"])
        if refining:
            x = UnbiasedLayerNormalization(dtype=dtype, name="refined")(x)
        if signed_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])
        decoder = AoADecoder(
            vocabulary_size,
            model_dim,
            embedding_dim,
            functools.partial(
                make_attention,
                decoder_heads,
                model_dim // decoder_heads,
                of_regions.for_memory().in_block(0),
                output_projection=False,
                dtype=dtype,
            ),
            context,
            dropout,
            dtype=dtype,
            name="decoder",
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, dtype=dtype, **kwargs)
        self.ignored_inputs = () if geometry else ("boxes",)
        self.vocabulary_size = vocabulary_size
        self.region_dim = region_dim
        self.num_layers = num_layers
        self.model_dim = model_dim
        self.embedding_dim = embedding_dim
        self.num_heads = num_heads
        self.refining = refining
        self.feedforward_dim = feedforward_dim
        self.context = context
        self.decoder_heads = decoder_heads
        self.dropout = dropout
        self.refining_dropout = refining_dropout
        self.aoa_dropout = aoa_dropout
        self.query_norm = query_norm
        self.key_norm = key_norm
        self.norm_affine = norm_affine
        self.geometry = geometry
        self.geometry_dim = geometry_dim
        self.signed_geometry = signed_geometry
        self.gate = gate
        self.image_area = image_area
        self.combined_features = combined_features
        self.area_layers = area_layers
        self.temperature = temperature
