from typing import Any

import keras

from keras_caption.inputs import Regions
from keras_caption.layers import (
    BoxEncoding,
    MatrixDense,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from keras_caption.models.attention import AttentionOptions, make_attention
from keras_caption.models.captioner import Captioner
from keras_caption.models.sizes import (
    check_heads,
    check_sizes,
    resolve_size,
)
from keras_caption.models.transformer_decoder import TransformerDecoder
from keras_caption.text import Vocabulary


@keras.saving.register_keras_serializable("keras_caption")
class NGSAN(Captioner):
    """Normalized and geometry-aware self-attention network over image regions.

    A linear layer with ReLU and dropout brings region features to the model's
    size; post-norm Transformer encoder blocks, whose self-attention may be
    normalized (NSA), geometry-aware (GSA) or both, refine them; a Transformer
    decoder generates the caption. With neither it is the paper's SAN.

    The paper normalizes the encoder only: in the decoder the length of a caption
    changes token by token, and with it the statistics. `geometry` and `gate` apply to
    the encoder too; areas and temperature, of other papers, to encoder and decoder.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        region_dim: int, size of a region's feature vector.
        num_layers: int, number of blocks of the encoder, and of the decoder.
        model_dim: int, size of the hidden states.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        dropout: float, dropout rate of embeddings, branches and attention weights.
        query_norm, key_norm: `None`, `"instance"`, `"batch"` or `"layer"`: how
            queries (keys) of the encoder are normalized.
        norm_affine: bool, whether these norms learn a gain and an offset.
        geometry: `None`, or one of `"content_independent"`, `"query"` and `"key"`,
            for GSA, and `"absolute"`, for an encoding of the boxes added to the
            regions; or several of them, joined by `"+"`.
        geometry_dim: int, size of a geometry vector per head (d_g). The paper gives
            none: 64 makes 41.25M parameters, not its 41.5M.
        signed_geometry: bool, whether a relative geometry tells left from right and
            above from below, which the paper's does not. The decoder, whose words
            have no boxes, then attends to regions with an encoding of their boxes
            added.
        gate: `None`, or `"aoa"`: the encoder's attention is gated as in AoANet, in
            place of its output projection.
        image_area: int, regions of the largest area to attend to, a run of regions in
            the order of the batch; 1 for plain attention. Its geometric bias is the
            mean of its regions'.
        caption_area: int, tokens of the largest area of the caption; 1 for plain
            attention.
        combined_features: bool, whether the keys of areas are the combined features
            of the area paper's Eq. 9, not the means of Eq. 3.
        area_layers: int, blocks, of encoder and decoder each, that attend to areas.
        temperature: `None`, or `"length"`: scores are divided by `sqrt(length + d)`,
            as in `GridTransformer`.
        caption_length: int, number of keys that this temperature counts in a caption.

    Call arguments:
        inputs: dict of `regions`, `boxes`, which may be omitted without `geometry`,
            and optionally a mask, see `keras_caption.inputs.Regions`; and `tokens`,
            see `Captioner`.

    Raises:
        InputError: If an option has no such value.

    Reference:
        Guo et al., "Normalized and Geometry-Aware Self-Attention Network for
        Image Captioning", CVPR 2020.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        region_dim: int = 2048,
        num_layers: int = 4,
        model_dim: int = 512,
        num_heads: int = 8,
        feedforward_dim: int = 2048,
        dropout: float = 0.1,
        query_norm: str | None = None,
        key_norm: str | None = None,
        norm_affine: bool = False,
        geometry: str | None = None,
        geometry_dim: int = 64,
        signed_geometry: bool = False,
        gate: str | None = None,
        image_area: int = 1,
        caption_area: int = 1,
        combined_features: bool = False,
        area_layers: int = 2,
        temperature: str | None = None,
        caption_length: int | None = 15,
        dtype: Any = None,
        **kwargs: Any,
    ):
        check_sizes(locals())
        dtype = keras.dtype_policies.get(dtype)
        vocabulary_size = resolve_size("vocabulary", vocabulary, vocabulary_size)
        check_heads(model_dim, num_heads)
        of_regions = AttentionOptions(
            dropout=dropout,
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
            gate=gate,
        )
        of_memory = of_regions.for_memory()
        of_captions = of_regions.for_captions(caption_area, caption_length)

        def attention(options, i):
            return make_attention(
                num_heads, model_dim // num_heads, options.in_block(i), dtype=dtype
            )

        inputs = Regions.symbolic(region_dim)
        mask = Regions(inputs).memory_mask(inputs)
        x = MatrixDense(model_dim, "relu", dtype=dtype, name="region_embedding")(
            inputs["regions"]
        )
        if of_regions.absolute_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        for i in range(num_layers):
            block = TransformerEncoderBlock(
                attention(of_regions, i),
                feedforward_dim,
                dropout,
                dtype=dtype,
                name=f"encoder_{i}",
            )
            x = block(x, mask=mask, boxes=inputs["boxes"])
        if signed_geometry:
            x = BoxEncoding(dtype=dtype)(x, inputs["boxes"])

        blocks = (
            TransformerDecoderBlock(
                attention(of_captions, i),
                attention(of_memory, i),
                feedforward_dim,
                dropout,
                dtype=dtype,
            )
            for i in range(num_layers)
        )
        decoder = TransformerDecoder(
            vocabulary_size, model_dim, blocks, dropout, dtype=dtype, name="decoder"
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, dtype=dtype, **kwargs)
        self.ignored_inputs = () if geometry else ("boxes",)
        self.vocabulary_size = vocabulary_size
        self.region_dim = region_dim
        self.num_layers = num_layers
        self.model_dim = model_dim
        self.num_heads = num_heads
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.query_norm = query_norm
        self.key_norm = key_norm
        self.norm_affine = norm_affine
        self.geometry = geometry
        self.geometry_dim = geometry_dim
        self.signed_geometry = signed_geometry
        self.gate = gate
        self.image_area = image_area
        self.caption_area = caption_area
        self.combined_features = combined_features
        self.area_layers = area_layers
        self.temperature = temperature
        self.caption_length = caption_length
