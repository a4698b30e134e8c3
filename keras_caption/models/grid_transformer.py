from typing import Any

import keras

from keras_caption.errors import InputError
from keras_caption.inputs import Grid
from keras_caption.layers import (
    BoxEncoding,
    CellBoxes,
    GridEncoding,
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
class GridTransformer(Captioner):
    """Transformer over a grid of convolutional features.

    A linear layer projects the features to the model's size, sinusoidal encodings of
    row and column are added, and Transformer blocks read the cells row by row. Two
    papers change its attention:

    *Area attention* (section 3.2 of its paper) lets the first `area_layers` blocks of
    the encoder and of the decoder attend to areas. The image and the caption have
    settings of their own, the two columns of the paper's Table 4: rectangles of up to
    `image_area` x `image_area` cells, in the encoder's self-attention and in the
    decoder's attention to the grid, and runs of up to `caption_area` tokens, in the
    decoder's self-attention.

    *Spatial self-attention* divides scores by `sqrt(length + d)` in place of
    `sqrt(d)` in self- and inter-attention (Eq. 2), and has dropout on embeddings,
    features and attention weights only (section 3). `length` is the number of keys,
    masked ones included: all cells of the grid, and `caption_length` for captions.
    That this is a constant is ours: with the length of each batch, a cached decoder
    would differ from a teacher-forced one. The paper adds the input of the values to
    the attended result (section 2.3), which the decoder's attention to the grid
    cannot do, as it has more values than queries; here it is the input of the
    queries, as in every other Transformer. The paper's limit of 14 words is set in
    the training data, not here.

    The mechanisms of the other papers, `query_norm` to `gate`, apply to the encoder.

    Neither paper describes a projection of the features, or how positions of a grid
    are encoded in two dimensions: both are ours.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        grid_height, grid_width: int, rows and columns of the grid.
        grid_dim: int, size of a cell's feature vector.
        num_layers: int, number of encoder blocks.
        decoder_layers: int, number of decoder blocks. Defaults to `num_layers`.
        model_dim: int, size of hidden states and embeddings; divisible by 4.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        dropout: float, dropout rate of features, embeddings and attention weights.
        branch_dropout: float, dropout rate of the blocks' branches. Defaults to
            `dropout`.
        image_area: int, rows and columns of the largest area of the grid; 1 for
            plain attention.
        caption_area: int, tokens of the largest area of the caption; 1 for plain
            attention.
        combined_features: bool, whether the keys of areas are the combined features
            of the area paper's Eq. 9, not the means of Eq. 3.
        area_layers: int, blocks, of encoder and decoder each, that attend to areas.
        temperature: `None`, or `"length"` for the spatial paper's.
        caption_length: int, number of keys that this temperature counts in a
            caption. Defaults to 15, BOS and the paper's 14 words.
        query_norm, key_norm: `None`, `"instance"`, `"batch"` or `"layer"`: how
            queries (keys) of the encoder are normalized, as in `NGSAN`.
        norm_affine: bool, whether these norms learn a gain and an offset.
        geometry: `None`, `"content_independent"`, `"query"`, `"key"`, or several of
            them joined by `"+"`: the bias that the boxes of the cells give the
            encoder's attention, as in `NGSAN`.
        geometry_dim: int, size of a geometry vector per head.
        signed_geometry: bool, whether a relative geometry tells left from right and
            above from below, which the paper's does not. The decoder, whose words
            have no boxes, then attends to cells with an encoding of their boxes added.
        gate: `None`, or `"aoa"`: the encoder's attention is gated as in AoANet, in
            place of its output projection.

    Call arguments:
        inputs: dict of `grid`, float `(batch, height, width, grid_dim)`, and
            `tokens`, see `Captioner`.

    Raises:
        InputError: If an option has no such value.

    References:
        Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019.
        Springenberg et al., "Image-to-Text Transduction with Spatial
        Self-Attention", ESANN 2018.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        grid_height: int = 8,
        grid_width: int = 8,
        grid_dim: int = 1536,
        num_layers: int = 6,
        decoder_layers: int | None = None,
        model_dim: int = 512,
        num_heads: int = 8,
        feedforward_dim: int = 2048,
        dropout: float = 0.1,
        branch_dropout: float | None = None,
        image_area: int = 1,
        caption_area: int = 1,
        combined_features: bool = False,
        area_layers: int = 2,
        temperature: str | None = None,
        caption_length: int | None = 15,
        query_norm: str | None = None,
        key_norm: str | None = None,
        norm_affine: bool = False,
        geometry: str | None = None,
        geometry_dim: int = 64,
        signed_geometry: bool = False,
        gate: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ):
        check_sizes(locals())
        dtype = keras.dtype_policies.get(dtype)
        vocabulary_size = resolve_size("vocabulary", vocabulary, vocabulary_size)
        check_heads(model_dim, num_heads)
        on_branches = dropout if branch_dropout is None else branch_dropout
        of_cells = AttentionOptions(
            dropout=dropout,
            query_norm=query_norm,
            key_norm=key_norm,
            norm_affine=norm_affine,
            geometry=geometry,
            geometry_dim=geometry_dim,
            signed_geometry=signed_geometry,
            area=image_area,
            grid_width=grid_width,
            combined_features=combined_features,
            area_layers=area_layers,
            temperature=temperature,
            gate=gate,
        )
        if of_cells.absolute_geometry:
            raise InputError(
                f"A grid has no geometry={geometry!r}: rows and columns of its cells "
                "are encoded in any case."
            )
        of_memory = of_cells.for_memory()
        of_captions = of_cells.for_captions(caption_area, caption_length)

        def attention(options, i):
            return make_attention(
                num_heads, model_dim // num_heads, options.in_block(i), dtype=dtype
            )

        inputs = Grid.symbolic(grid_height, grid_width, grid_dim)
        grid = inputs["grid"]
        boxes = CellBoxes(dtype=dtype)(grid) if geometry else None
        x = MatrixDense(model_dim, dtype=dtype, name="grid_embedding")(grid)
        x = GridEncoding(dtype=dtype)(x)
        x = keras.layers.Reshape((grid_height * grid_width, model_dim), dtype=dtype)(x)
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        for i in range(num_layers):
            x = TransformerEncoderBlock(
                attention(of_cells, i),
                feedforward_dim,
                on_branches,
                dtype=dtype,
                name=f"encoder_{i}",
            )(x, boxes=boxes)
        if signed_geometry:
            x = BoxEncoding(dtype=dtype)(x, boxes)
        blocks = [
            TransformerDecoderBlock(
                attention(of_captions, i),
                attention(of_memory, i),
                feedforward_dim,
                on_branches,
                dtype=dtype,
            )
            for i in range(decoder_layers or num_layers)
        ]
        decoder = TransformerDecoder(
            vocabulary_size, model_dim, blocks, dropout, dtype=dtype, name="decoder"
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, dtype=dtype, **kwargs)
        self.vocabulary_size = vocabulary_size
        self.grid_height = grid_height
        self.grid_width = grid_width
        self.grid_dim = grid_dim
        self.num_layers = num_layers
        self.decoder_layers = decoder_layers
        self.model_dim = model_dim
        self.num_heads = num_heads
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.branch_dropout = branch_dropout
        self.image_area = image_area
        self.caption_area = caption_area
        self.combined_features = combined_features
        self.area_layers = area_layers
        self.temperature = temperature
        self.caption_length = caption_length
        self.query_norm = query_norm
        self.key_norm = key_norm
        self.norm_affine = norm_affine
        self.geometry = geometry
        self.geometry_dim = geometry_dim
        self.signed_geometry = signed_geometry
        self.gate = gate

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "GridTransformer":
        if "max_area" in config:  # of a file saved when one size served for both
            size = config["max_area"]
            others = {name: x for name, x in config.items() if name != "max_area"}
            areas = {"image_area": size, "caption_area": size}
            # Such a model counted the keys up to the query, as its cached steps still
            # do without a constant: it generates the same captions.
            config = {**others, **areas, "caption_length": None}
        return super().from_config(config)
