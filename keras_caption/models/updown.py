import functools
from typing import Unpack

import keras

from keras_caption.base.arguments import Count, ShareBelowOne
from keras_caption.inputs import InputKind, Regions
from keras_caption.layers import MatrixDense
from keras_caption.layers.masked_mean import masked_mean
from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.attention import Areas, AttentionOptions, make_attention
from keras_caption.models.captioner import Captioner, CaptionerOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.sizes import resolve_size
from keras_caption.text import Vocabulary


class UpDownOptions(Areas, CaptionerOptions, total=False):
    """Keywords of `UpDown` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class UpDown(Captioner):
    """Bottom-up and top-down attention: two LSTMs that attend to image regions.

    The first LSTM reads the mean of the image's regions, the last state of the second
    LSTM and the last token. Its state is the query of additive attention over the
    regions. The second LSTM reads the attended vector and generates the caption. See
    `AoADecoder`.

    Where the paper and Luo's ImageCaptioning.pytorch differ, the model follows Luo's
    code: linear layers with ReLU and dropout bring regions and their mean to the size
    of the LSTMs, word embeddings pass a ReLU, and dropout is applied before the output.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        region_dim: int, size of a region's feature vector.
        image_vector_dim: int, size of the feature vector of the whole image, or `None`.
            With `None` the model reads the mean of the regions in its place.
        model_dim: int, size of the LSTMs and of the projected regions.
        embedding_dim: int, size of a token's embedding.
        attention_dim: int, size of the projected queries and keys.
        dropout: float, dropout rate of regions, their mean, embeddings and output.
        **options: The options of `keras_caption.models.AttentionOptions` for areas of
            the input, and the keywords of `Captioner`. The decoder's one layer attends
            to areas unless `area_layers` is 0.

    Call arguments:
        inputs: dict of `regions`, and optionally a mask, see
            `keras_caption.inputs.Regions`; with `image_vector_dim`, of `image_vector`,
            float `(batch, image_vector_dim)`; and `tokens`, see `Captioner`.

    Raises:
        InputError: If an option has a wrong value.

    Reference:
        Anderson et al., "Bottom-Up and Top-Down Attention for Image Captioning and
        Visual Question Answering", CVPR 2018.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: Count | None = None,
        region_dim: Count = 2048,
        image_vector_dim: Count | None = None,
        model_dim: Count = 1000,
        embedding_dim: Count = 1000,
        attention_dim: Count = 512,
        dropout: ShareBelowOne = 0.5,
        **options: Unpack[UpDownOptions],
    ):
        vocabulary_size = self.vocabulary_size = resolve_size(
            "vocabulary", vocabulary, vocabulary_size
        )
        dtype = options.get("dtype")

        # === Encoder ===
        inputs = Regions.symbolic(region_dim)
        mask = Regions(inputs).memory_mask(inputs)
        if image_vector_dim is None:
            whole = masked_mean(inputs["regions"], mask)
        else:
            whole = keras.Input((image_vector_dim,), name="image_vector")
            inputs["image_vector"] = whole
        outputs = {}  # named as the decoder's arguments
        for name, x in (("memory", inputs["regions"]), ("summary", whole)):
            layer = "region_embedding" if name == "memory" else "image_embedding"
            x = MatrixDense(model_dim, "relu", dtype=dtype, name=layer)(x)
            outputs[name] = keras.layers.Dropout(dropout, dtype=dtype)(x)

        # === Decoder ===
        decoder = AoADecoder(
            vocabulary_size,
            model_dim,
            embedding_dim,
            functools.partial(
                make_attention,
                1,
                attention_dim,
                AttentionOptions.of(options, score="additive").in_block(0),
                output_projection=False,
                value_projection=False,
                dtype=dtype,
            ),
            context="lstm",
            dropout=dropout,
            concatenated=True,
            dtype=dtype,
            name="decoder",
        )
        encoder = keras.Model(inputs, outputs, name="encoder")
        super().__init__(encoder, decoder, vocabulary, **for_base(options))
        self.ignored_inputs = ("boxes",)

    @property
    def memory_kind(self) -> InputKind:
        return next(kind for kind in self.kinds if isinstance(kind, Regions))
