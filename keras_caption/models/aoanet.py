import keras

from keras_caption.layers import (
    AttentionOnAttention,
    MatrixDense,
    MultiHeadAttention,
    RefiningBlock,
    UnbiasedLayerNormalization,
)
from keras_caption.models.aoa_decoder import AoADecoder
from keras_caption.models.captioner import (
    Captioner,
    check_heads,
    region_inputs,
    resolve_vocabulary_size,
)
from keras_caption.models.sizes import check_sizes

REFININGS = (None, "attention", "aoa")


@keras.saving.register_keras_serializable("keras_caption")
class AoANet(Captioner):
    """Attention on attention network over image regions.

    A linear layer with ReLU and dropout brings region features to the model's
    size; blocks of self-attention with attention on attention refine them; an LSTM
    with another one words them, see `AoADecoder`.

    Args:
        vocabulary: `keras_caption.text.Vocabulary`, or `None`.
        vocabulary_size: Number of words where there is no vocabulary.
        region_dim: Size of a region's feature vector.
        num_layers: Refining blocks.
        model_dim: Size of refined regions and of the LSTM.
        embedding_dim: Size of a word embedding.
        num_heads: Attention heads of the refining blocks.
        refining: `"aoa"`; `"attention"`, with feed-forward layers in place of AoA
            (Figure 6); or `None`, for no refining.
        feedforward_dim: Size of these feed-forward layers between their two parts.
        context: Of `AoADecoder` (Figure 7).
        decoder_heads: Attention heads of the decoder.
        dropout: Dropout rate of embeddings, fed-back context and output.
        refining_dropout: Dropout rate of the refining blocks' branches, and of all
            attention weights.
        aoa_dropout: Dropout rate of what AoA in the refining blocks reads.

    Call arguments:
        inputs: dict of `regions`, float `(batch, N, region_dim)`; `boxes`, float
            `(batch, N, 4)`, which may be omitted, as they are not attended to;
            optionally `region_mask`, bool `(batch, N)`, True where valid; and
            `tokens`, see `Captioner`.

    Reference:
        Huang et al., "Attention on Attention for Image Captioning", ICCV 2019.
    """

    def __init__(
        self,
        vocabulary=None,
        vocabulary_size=None,
        region_dim=2048,
        num_layers=6,
        model_dim=1024,
        embedding_dim=1024,
        num_heads=8,
        refining="aoa",
        feedforward_dim=2048,
        context="aoa",
        decoder_heads=8,
        dropout=0.5,
        refining_dropout=0.1,
        aoa_dropout=0.3,
        dtype=None,
        **kwargs,
    ):
        check_sizes(locals())
        dtype = keras.dtype_policies.get(dtype)
        vocabulary_size = resolve_vocabulary_size(vocabulary, vocabulary_size)
        if refining not in REFININGS:
            raise ValueError(
                f"`refining` must be one of {REFININGS}. Received: {refining!r}"
            )
        check_heads(model_dim, decoder_heads)
        if refining:
            check_heads(model_dim, num_heads)
        inputs = region_inputs(region_dim)
        x = MatrixDense(model_dim, "relu", dtype=dtype, name="region_embedding")(
            inputs["regions"]
        )
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        for i in range(num_layers if refining else 0):
            gate = None
            if refining == "aoa":
                gate = AttentionOnAttention(aoa_dropout, dtype=dtype)
            attention = MultiHeadAttention(
                num_heads,
                model_dim // num_heads,
                dropout=refining_dropout,
                gate=gate,
                output_projection=gate is None,
                dtype=dtype,
            )
            x = RefiningBlock(
                attention,
                None if refining == "aoa" else feedforward_dim,
                refining_dropout,
                dtype=dtype,
                name=f"refining_{i}",
            )(x, mask=inputs["region_mask"], boxes=inputs["boxes"])
        if refining:
            x = UnbiasedLayerNormalization(dtype=dtype, name="refined")(x)
        decoder = AoADecoder(
            vocabulary_size,
            model_dim,
            embedding_dim,
            decoder_heads,
            context,
            dropout,
            refining_dropout,
            dtype=dtype,
            name="decoder",
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, vocabulary, dtype=dtype, **kwargs)
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

    @property
    def reads_boxes(self):
        return False
