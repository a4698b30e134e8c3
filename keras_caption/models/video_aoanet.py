import functools
from typing import Any

import keras

from keras_caption.errors import InputError
from keras_caption.inputs import Frames
from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.attention import AttentionOptions, make_attention
from keras_caption.models.captioner import Captioner
from keras_caption.models.sizes import check_heads, check_sizes, resolve_size
from keras_caption.text import Vocabulary


@keras.saving.register_keras_serializable("keras_caption")
class VideoAoANet(Captioner):
    """Bidirectional LSTM over the frames of a video, and AoANet's decoder.

    LSTMs read the features of the frames in both directions, the backward one from the
    last valid frame on; their joint states are the memory of an `AoADecoder`, whose
    `context` is `"linear"` in the paper's "base" and `"aoa"` in its "decoder with
    AoA". The paper gives no sizes. AoANet's are used: those of the LSTM are ours, half
    of `model_dim` in each direction, and so is dropout after it.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        frame_dim: int, size of a frame's feature vector.
        num_layers: int, number of bidirectional LSTMs.
        model_dim: int, size of the encoded frames and of the decoder's LSTM; even.
        embedding_dim: int, size of a token's embedding.
        context: str, of `AoADecoder`.
        decoder_heads: int, attention heads of the decoder; divides `model_dim`.
        dropout: float, dropout rate of encoded frames, embeddings, fed-back context
            and output.
        attention_dropout: float, dropout rate of attention weights. Defaults to
            `dropout` if `None`.
        frame_area: int, frames of the largest area to attend to; 1 for plain
            attention.
        combined_features: bool, whether the keys of areas are the combined features
            of the area paper's Eq. 9, not the means of Eq. 3.
        temperature: `None`, or `"length"`: scores are divided by `sqrt(length + d)`,
            as in `GridTransformer`.

    Call arguments:
        inputs: dict of `frames` and optionally a mask, see
            `keras_caption.inputs.Frames`; and `tokens`, see `Captioner`.

    Raises:
        InputError: If an option has no such value, or `model_dim` is odd.

    Reference:
        Huang et al., "Attention on Attention for Image Captioning", ICCV 2019,
        section 4.6.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        frame_dim: int = 2048,
        num_layers: int = 1,
        model_dim: int = 1024,
        embedding_dim: int = 1024,
        context: str = "aoa",
        decoder_heads: int = 8,
        dropout: float = 0.5,
        attention_dropout: float | None = 0.1,
        frame_area: int = 1,
        combined_features: bool = False,
        temperature: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ):
        check_sizes(locals())
        dtype = keras.dtype_policies.get(dtype)
        vocabulary_size = resolve_size("vocabulary", vocabulary, vocabulary_size)
        check_heads(model_dim, decoder_heads)
        if model_dim % 2:
            raise InputError(
                "Both directions of an LSTM share `model_dim`: it should be even. "
                f"Received: model_dim={model_dim}"
            )

        # === Encoder ===
        inputs = Frames.symbolic(frame_dim)
        mask = Frames(inputs).memory_mask(inputs)
        x = inputs["frames"]
        for i in range(num_layers):
            # cuDNN fails on a batch that has a video without a valid frame, or one
            # whose padding is not at its end.
            lstm = keras.layers.LSTM(
                model_dim // 2, return_sequences=True, use_cudnn=False, dtype=dtype
            )
            x = keras.layers.Bidirectional(lstm, dtype=dtype, name=f"encoder_{i}")(
                x, mask=mask
            )
            x = keras.layers.Dropout(dropout, dtype=dtype)(x)

        # === Decoder ===
        options = AttentionOptions(
            dropout=dropout if attention_dropout is None else attention_dropout,
            area=frame_area,
            combined_features=combined_features,
            temperature=temperature,
        )
        decoder = AoADecoder(
            vocabulary_size,
            model_dim,
            embedding_dim,
            functools.partial(
                make_attention,
                decoder_heads,
                model_dim // decoder_heads,
                options,
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

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.frame_dim = frame_dim
        self.num_layers = num_layers
        self.model_dim = model_dim
        self.embedding_dim = embedding_dim
        self.context = context
        self.decoder_heads = decoder_heads
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.frame_area = frame_area
        self.combined_features = combined_features
        self.temperature = temperature
