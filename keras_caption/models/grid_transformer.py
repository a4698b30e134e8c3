from typing import Unpack

import keras

from keras_caption.base.arguments import Count, Layers, ShareBelowOne, Side
from keras_caption.base.errors import InputError
from keras_caption.inputs import Grid
from keras_caption.layers import (
    BoxEncoding,
    CellBoxes,
    GridEncoding,
    MatrixDense,
)
from keras_caption.models.attention import AttentionOptions, Mechanisms
from keras_caption.models.blocks import BlockOptions, Blocks
from keras_caption.models.captioner import Captioner, CaptionerOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.models.transformer_blocks import TransformerBlocks
from keras_caption.text import Vocabulary


class GridTransformerOptions(Mechanisms, Blocks, CaptionerOptions, total=False):
    """Keywords of `GridTransformer` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class GridTransformer(Captioner):
    """Transformer over a grid of convolutional features.

    A linear layer projects the features to the model's size, sinusoidal encodings of
    row and column are added, and Transformer blocks read the cells row by row. Two
    papers change its attention:

    *Area attention* (section 3.2 of its paper) lets the first `area_layers` blocks of
    the encoder and of the decoder attend to areas. The image and the caption have
    separate settings, the two columns of the paper's Table 4: `input_area` is the side
    of the largest square of cells, for the encoder's self-attention and the decoder's
    attention to the grid; `output_area` is the length of the longest run of tokens, for
    the decoder's self-attention.

    *Spatial self-attention* divides scores by `sqrt(length + d)` in place of
    `sqrt(d)` in self- and inter-attention (Eq. 2), and applies dropout to embeddings,
    features and attention weights only (section 3). `length` is the number of keys,
    masked ones included: all cells of the grid, and `output_length` for captions. The
    constant `output_length` is our choice: with the length of each batch, a cached
    decoder would differ from a teacher-forced one. The paper's residual connection adds
    the input of the values to the attended result (section 2.3). The decoder's
    attention to the grid has more values than queries, so here the residual is the
    input of the queries, as in every other Transformer. The paper's limit of 14 words
    is a setting of the training data, not of this model.

    Neither paper describes a projection of the features, or an encoding of positions in
    two dimensions: both are our choice.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        grid_height, grid_width: int, rows and columns of the grid.
        grid_dim: int, size of a cell's feature vector.
        num_layers: int, number of encoder blocks.
        decoder_layers: int, number of decoder blocks. Defaults to `num_layers`.
        model_dim: int, size of hidden states and embeddings; a multiple of 4.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        dropout: float, dropout rate of features, embeddings and attention weights.
        branch_dropout: float, dropout rate of the blocks' branches. Defaults to
            `dropout`.
        **options: The options of `keras_caption.models.AttentionOptions` and
            `BlockOptions`, and the keywords of `Captioner`. Items are cells, whose
            boxes are known; `"absolute"` geometry is not available.

    Call arguments:
        inputs: dict of `grid`, float `(batch, height, width, grid_dim)`, and
            `tokens`, see `Captioner`.

    Raises:
        InputError: If an option has a wrong value.

    References:
        Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019.
        Springenberg et al., "Image-to-Text Transduction with Spatial
        Self-Attention", ESANN 2018.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: Count | None = None,
        grid_height: Side = 8,
        grid_width: Side = 8,
        grid_dim: Count = 1536,
        num_layers: Layers = 6,
        decoder_layers: Layers | None = None,
        model_dim: Count = 512,
        num_heads: Count = 8,
        feedforward_dim: Count = 2048,
        dropout: ShareBelowOne = 0.1,
        branch_dropout: ShareBelowOne | None = None,
        **options: Unpack[GridTransformerOptions],
    ):
        vocabulary_size = self.vocabulary_size = resolve_size(
            "vocabulary", vocabulary, vocabulary_size
        )
        dtype = options.get("dtype")
        check_heads(model_dim, num_heads)

        # === Attention ===
        mechanisms = AttentionOptions.of(
            options, dropout=dropout, grid_width=grid_width
        )
        if mechanisms.absolute_geometry:
            raise InputError(
                f"A grid has no geometry={mechanisms.geometry!r}: rows and columns of "
                "its cells are encoded in any case."
            )
        transformer = TransformerBlocks(
            mechanisms=mechanisms,
            blocks=BlockOptions.of(options),
            model_dim=model_dim,
            num_heads=num_heads,
            feedforward_dim=feedforward_dim,
            dropout=dropout if branch_dropout is None else branch_dropout,
            dtype=dtype,
        )

        # === Encoder ===
        inputs = Grid.symbolic(grid_height, grid_width, grid_dim)
        grid = inputs["grid"]
        boxes = CellBoxes(dtype=dtype)(grid) if mechanisms.geometry else None
        x = MatrixDense(model_dim, dtype=dtype, name="grid_embedding")(grid)
        x = GridEncoding(dtype=dtype)(x)
        # (batch, height, width, model_dim) to (batch, height * width, model_dim)
        x = keras.layers.Reshape((grid_height * grid_width, model_dim), dtype=dtype)(x)
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        x = transformer.encode(x, num_layers, boxes=boxes)
        # Words have no boxes that could be related to those of cells: the memory
        # carries positions instead.
        if mechanisms.signed_geometry:
            x = BoxEncoding(dtype=dtype)(x, boxes)

        # === Decoder ===
        decoder_blocks = [*transformer.decoder_blocks(decoder_layers or num_layers)]
        decoder = transformer.decoder(vocabulary_size, decoder_blocks, dropout)
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, **for_base(options))
