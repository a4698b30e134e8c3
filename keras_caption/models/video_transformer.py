from typing import Any

import keras
import keras_hub

from keras_caption.inputs import Frames
from keras_caption.layers import (
    MatrixDense,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from keras_caption.models.attention import AttentionOptions, make_attention
from keras_caption.models.captioner import Captioner
from keras_caption.models.sizes import check_heads, check_sizes, resolve_size
from keras_caption.models.transformer_decoder import TransformerDecoder
from keras_caption.text import Vocabulary


@keras.saving.register_keras_serializable("keras_caption")
class VideoTransformer(Captioner):
    """Transformer over the frames of a video.

    A linear layer with ReLU brings features of frames to the model's size, sinusoidal
    positions and dropout follow, and post-norm Transformer blocks encode the frames;
    a Transformer decoder generates the caption. *Normalized self-attention* (NG-SAN,
    section 6.1) normalizes the queries of the encoder by `query_norm="instance"`.

    The paper "directly uses Transformer", with one block in encoder and decoder and
    the other sizes of its captioner of images. That the encoder has positions, as the
    Transformer does and that captioner does not, is our reading of it; that they
    follow the linear layer is ours.

    Areas (`frame_area`) are runs of frames, in the encoder's self-attention and in the
    decoder's attention to the frames. `gate` applies to the encoder, `temperature` to
    all attention.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: int, number of tokens, needed without a `vocabulary`.
        frame_dim: int, size of a frame's feature vector.
        num_layers: int, number of blocks of the encoder, and of the decoder.
        model_dim: int, size of the hidden states.
        num_heads: int, number of attention heads; divides `model_dim`.
        feedforward_dim: int, inner size of the feed-forward layers.
        dropout: float, dropout rate of embeddings, branches and attention weights.
        positions: bool, whether the encoder knows the order of the frames.
        query_norm, key_norm: `None`, `"instance"`, `"batch"` or `"layer"`: how
            queries (keys) of the encoder are normalized, as in `NGSAN`.
        norm_affine: bool, whether these norms learn a gain and an offset.
        gate: `None`, or `"aoa"`: the encoder's attention is gated as in AoANet, in
            place of its output projection.
        frame_area: int, frames of the largest area to attend to; 1 for plain
            attention.
        caption_area: int, tokens of the largest area of the caption; 1 for plain
            attention.
        combined_features: bool, whether the keys of areas are the combined features
            of the area paper's Eq. 9, not the means of Eq. 3.
        area_layers: int, blocks, of encoder and decoder each, that attend to areas.
        temperature: `None`, or `"length"`: scores are divided by `sqrt(length + d)`,
            as in `GridTransformer`.
        caption_length: int, number of keys that this temperature counts in a caption.

    Call arguments:
        inputs: dict of `frames` and optionally a mask, see
            `keras_caption.inputs.Frames`; and `tokens`, see `Captioner`.

    Raises:
        InputError: If an option has no such value.

    Reference:
        Guo et al., "Normalized and Geometry-Aware Self-Attention Network for
        Image Captioning", CVPR 2020, section 6.1.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        vocabulary_size: int | None = None,
        frame_dim: int = 1000,
        num_layers: int = 1,
        model_dim: int = 512,
        num_heads: int = 8,
        feedforward_dim: int = 2048,
        dropout: float = 0.1,
        positions: bool = True,
        query_norm: str | None = None,
        key_norm: str | None = None,
        norm_affine: bool = False,
        gate: str | None = None,
        frame_area: int = 1,
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

        # === Attention ===
        of_frames = AttentionOptions(
            dropout=dropout,
            query_norm=query_norm,
            key_norm=key_norm,
            norm_affine=norm_affine,
            area=frame_area,
            combined_features=combined_features,
            area_layers=area_layers,
            temperature=temperature,
            gate=gate,
        )
        of_memory = of_frames.for_memory()
        of_captions = of_frames.for_captions(caption_area, caption_length)

        def attention(options, i):
            return make_attention(
                num_heads, model_dim // num_heads, options.in_block(i), dtype=dtype
            )

        # === Encoder ===
        inputs = Frames.symbolic(frame_dim)
        mask = Frames(inputs).memory_mask(inputs)
        x = MatrixDense(model_dim, "relu", dtype=dtype, name="frame_embedding")(
            inputs["frames"]
        )
        if positions:
            x = x + keras_hub.layers.SinePositionEncoding(dtype=dtype)(x)
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        for i in range(num_layers):
            x = TransformerEncoderBlock(
                attention(of_frames, i),
                feedforward_dim,
                dropout,
                dtype=dtype,
                name=f"encoder_{i}",
            )(x, mask=mask)

        # === Decoder ===
        blocks = [
            TransformerDecoderBlock(
                attention(of_captions, i),
                attention(of_memory, i),
                feedforward_dim,
                dropout,
                dtype=dtype,
            )
            for i in range(num_layers)
        ]
        decoder = TransformerDecoder(
            vocabulary_size, model_dim, blocks, dropout, dtype=dtype, name="decoder"
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, dtype=dtype, **kwargs)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.frame_dim = frame_dim
        self.num_layers = num_layers
        self.model_dim = model_dim
        self.num_heads = num_heads
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.positions = positions
        self.query_norm = query_norm
        self.key_norm = key_norm
        self.norm_affine = norm_affine
        self.gate = gate
        self.frame_area = frame_area
        self.caption_area = caption_area
        self.combined_features = combined_features
        self.area_layers = area_layers
        self.temperature = temperature
        self.caption_length = caption_length
