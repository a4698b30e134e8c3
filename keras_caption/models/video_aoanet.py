import functools
from typing import Unpack

import keras

from keras_caption.base.arguments import Count, Layers, ShareBelowOne
from keras_caption.base.errors import InputError
from keras_caption.inputs import Frames
from keras_caption.layers.lstm import make_lstm
from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.attention import (
    Areas,
    AttentionOptions,
    Score,
    Temperature,
    make_attention,
)
from keras_caption.models.captioner import Captioner, CaptionerOptions
from keras_caption.models.constructors import for_base
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.text import Vocabulary


class VideoAoANetOptions(Score, Areas, Temperature, CaptionerOptions, total=False):
    """Keywords of `VideoAoANet` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class VideoAoANet(Captioner):
    """Bidirectional LSTM over the frames of a video, and AoANet's decoder.

    LSTMs read the features of the frames in both directions; the backward LSTM starts
    at the last valid frame. Their concatenated states are the memory of an
    `AoADecoder`, whose `context` is `"linear"` in the paper's "base" and `"aoa"` in its
    "decoder with AoA". The paper gives no sizes: the defaults are those of AoANet. Half
    of `model_dim` for the LSTM of each direction, and dropout after it, are our choice.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        frame_dim: int, size of a frame's feature vector.
        num_layers: int, number of bidirectional LSTMs.
        model_dim: int, size of the encoded frames and of the decoder's LSTM; even.
        embedding_dim: int, size of a token's embedding.
        context: str, how the decoder computes its context: `"aoa"`, `"linear"`,
            `"lstm"` or `"lstm_aoa"`. See `AoADecoder`.
        decoder_heads: int, attention heads of the decoder; divides `model_dim`.
        dropout: float, dropout rate of encoded frames, embeddings, context and output.
            The context is what the LSTM reads beside an embedding.
        attention_dropout: float, dropout rate of attention weights, or `None` for
            `dropout`.
        **options: The options of `keras_caption.models.AttentionOptions` for areas of
            the input, the score and the temperature, and the keywords of `Captioner`.
            The decoder's one layer attends to areas unless `area_layers` is 0.

    Call arguments:
        inputs: dict of `frames` and optionally a mask, see
            `keras_caption.inputs.Frames`; and `tokens`, see `Captioner`.

    Raises:
        InputError: If an option has a wrong value, or `model_dim` is odd.

    Reference:
        Huang et al., "Attention on Attention for Image Captioning", ICCV 2019,
        section 4.6.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: Count | None = None,
        frame_dim: Count = 2048,
        num_layers: Layers = 1,
        model_dim: Count = 1024,
        embedding_dim: Count = 1024,
        context: str = "aoa",
        decoder_heads: Count = 8,
        dropout: ShareBelowOne = 0.5,
        attention_dropout: ShareBelowOne | None = 0.1,
        **options: Unpack[VideoAoANetOptions],
    ):
        vocabulary_size = self.vocabulary_size = resolve_size(
            "vocabulary", vocabulary, vocabulary_size
        )
        dtype = options.get("dtype")
        check_heads(model_dim, decoder_heads)
        if model_dim % 2:
            raise InputError(
                "`model_dim` should be even: each direction of an LSTM has half of it. "
                f"Received: model_dim={model_dim}"
            )

        # === Encoder ===
        inputs = Frames.symbolic(frame_dim)
        mask = Frames(inputs).memory_mask(inputs)
        x = inputs["frames"]
        for i in range(num_layers):
            lstm = make_lstm(model_dim // 2, dtype=dtype)
            x = keras.layers.Bidirectional(lstm, dtype=dtype, name=f"encoder_{i}")(
                x, mask=mask
            )
            x = keras.layers.Dropout(dropout, dtype=dtype)(x)

        # === Decoder ===
        # Frames have no boxes, and LSTMs no self-attention: AoANet's decoder has all
        # the attention there is.
        mechanisms = AttentionOptions.of(
            options,
            dropout=dropout if attention_dropout is None else attention_dropout,
        )
        decoder = AoADecoder(
            vocabulary_size,
            model_dim,
            embedding_dim,
            functools.partial(
                make_attention,
                decoder_heads,
                model_dim // decoder_heads,
                mechanisms.in_block(0),
                output_projection=False,
                value_projection=mechanisms.score is None,
                dtype=dtype,
            ),
            context,
            dropout,
            dtype=dtype,
            name="decoder",
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, **for_base(options))
