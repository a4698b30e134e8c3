import dataclasses
from typing import Unpack

import keras

from keras_caption.base.arguments import Count, Layers, ShareBelowOne
from keras_caption.base.errors import InputError
from keras_caption.inputs import Text
from keras_caption.layers import (
    SinePositionEncoding,
    WordEmbedding,
)
from keras_caption.models.attention import (
    AttentionOptions,
    Gate,
    Norms,
    OutputAreas,
    Score,
)
from keras_caption.models.blocks import Activation, BlockOptions, Blocks
from keras_caption.models.constructors import for_base
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.models.transformer_blocks import TransformerBlocks
from keras_caption.models.translator import Translator, TranslatorOptions
from keras_caption.text import Tokenizer


class TransformerTranslatorOptions(
    Norms, Score, OutputAreas, Gate, Blocks, TranslatorOptions, total=False
):
    """Keywords of `TransformerTranslator` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class TransformerTranslator(Translator):
    """Transformer encoder-decoder for translation, by default post-norm.

    Embeddings, scaled by `sqrt(model_dim)`, plus sinusoidal positions go through
    Transformer blocks. Two papers change its attention:

    *Area attention* (section 3.1.1 of its paper) lets the first `area_layers` blocks
    attend to areas. These are runs of up to `input_area` tokens in the encoder's
    self-attention and the decoder's attention to the memory. In the decoder's
    self-attention they are runs of up to `output_area` tokens that do not end after the
    query.

    *Normalized self-attention* (NG-SAN, section 6.2), `query_norm="instance"`,
    normalizes the queries of the encoder.

    Args:
        source, target: `keras_caption.text.Tokenizer` of the languages, or `None`.
        source_size, target_size: int, vocabulary sizes, needed without tokenizers.
        num_layers: int, number of encoder blocks.
        decoder_layers: int, number of decoder blocks. Defaults to `num_layers`.
        model_dim: int, size of hidden states and embeddings.
        num_heads: int, number of attention heads; divides `model_dim`.
        decoder_heads: int, number of heads of the decoder. Defaults to `num_heads`.
        feedforward_dim: int, inner size of the feed-forward layers.
        decoder_feedforward_dim: int, inner size of the decoder's feed-forward layers.
            Defaults to `feedforward_dim`.
        decoder_activation: str, activation of the decoder's feed-forward layers.
            Defaults to `activation`.
        dropout: float, dropout rate of embeddings and branches.
        attention_dropout: float, dropout rate of attention weights. Defaults to
            `dropout`.
        shared_embeddings: bool, whether source, target and softmax share one table.
            This needs one tokenizer for both languages. Defaults to `False`: the three
            tables are separate.
        tied_softmax: bool, whether target and softmax share one table;
            `shared_embeddings` implies it.
        logit_bias: bool, whether a softmax that shares its table has a bias. A softmax
            with a separate table always has a bias.
        **options: The options of `keras_caption.models.AttentionOptions`, without those
            of geometry and temperature, and of `BlockOptions`; and the keywords of
            `Translator`.

    Call arguments:
        inputs: dict of `source`, int `(batch, S)`, to EOS, then PAD, and `tokens`,
            see `Seq2Seq`.

    Raises:
        InputError: If an option has a wrong value, or embeddings are shared between
            two vocabularies.

    References:
        Vaswani et al., "Attention Is All You Need", NeurIPS 2017; Li, Kaiser, Bengio,
        Si, "Area Attention", ICML 2019; Guo et al., "Normalized and Geometry-Aware
        Self-Attention Network for Image Captioning", CVPR 2020.
    """

    def __init__(
        self,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        source_size: Count | None = None,
        target_size: Count | None = None,
        num_layers: Layers = 6,
        decoder_layers: Layers | None = None,
        model_dim: Count = 512,
        num_heads: Count = 8,
        feedforward_dim: Count = 2048,
        dropout: ShareBelowOne = 0.1,
        attention_dropout: ShareBelowOne | None = None,
        shared_embeddings: bool = False,
        tied_softmax: bool = False,
        logit_bias: bool = False,
        decoder_heads: Count | None = None,
        decoder_feedforward_dim: Count | None = None,
        decoder_activation: Activation | None = None,
        **options: Unpack[TransformerTranslatorOptions],
    ):
        decoder_heads = decoder_heads or num_heads
        check_heads(model_dim, num_heads)
        check_heads(model_dim, decoder_heads)
        source_size = self.source_size = resolve_size("source", source, source_size)
        target_size = self.target_size = resolve_size("target", target, target_size)
        dtype = options.get("dtype")
        differ = source_size != target_size or (
            source and target and not source.shares_ids(target)
        )
        if shared_embeddings and differ:
            raise InputError(
                "`shared_embeddings` needs one vocabulary for source and target, but "
                f"there are two, of {source_size} and {target_size} tokens."
            )

        # The smaller branches that are the default of captioners were measured on
        # captioners only.
        blocks = BlockOptions.of(options)
        if blocks.initialization is None:
            blocks = dataclasses.replace(blocks, initialization="fairseq")

        # === Attention ===
        source_blocks = TransformerBlocks(
            mechanisms=AttentionOptions.of(
                options,
                dropout=dropout if attention_dropout is None else attention_dropout,
            ),
            blocks=blocks,
            model_dim=model_dim,
            num_heads=num_heads,
            feedforward_dim=feedforward_dim,
            dropout=dropout,
            dtype=dtype,
        )
        target_blocks = dataclasses.replace(
            source_blocks,
            blocks=dataclasses.replace(
                blocks, activation=decoder_activation or blocks.activation
            ),
            num_heads=decoder_heads,
            feedforward_dim=decoder_feedforward_dim or feedforward_dim,
        )

        # === Encoder ===
        inputs = Text.symbolic()
        mask = Text(inputs).memory_mask(inputs)
        embedding = WordEmbedding(
            source_size, model_dim, dtype=dtype, name="source_embedding"
        )
        x = embedding(inputs["source"])
        x = x + SinePositionEncoding(dtype=dtype)(x)
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        x = source_blocks.encode(x, num_layers, mask=mask)

        # === Decoder ===
        decoder_blocks = [*target_blocks.decoder_blocks(decoder_layers or num_layers)]
        if tied_softmax and not shared_embeddings:
            embedding = WordEmbedding(
                target_size, model_dim, dtype=dtype, name="target_embedding"
            )
        decoder = target_blocks.decoder(
            target_size,
            decoder_blocks,
            dropout,
            embedding=embedding if shared_embeddings or tied_softmax else None,
            logit_bias=logit_bias,
        )
        encoder = keras.Model(inputs, x, name="encoder")
        super().__init__(encoder, decoder, source, target, **for_base(options))
