from typing import Literal, Unpack

import keras

from keras_caption.base.arguments import Count, Layers, ShareBelowOne
from keras_caption.inputs import Text
from keras_caption.layers import WordEmbedding
from keras_caption.layers.lstm import make_lstm
from keras_caption.models.attention import (
    Areas,
    AttentionOptions,
    Score,
    make_attention,
)
from keras_caption.models.constructors import for_base
from keras_caption.models.lstm_decoder import LSTMDecoder
from keras_caption.models.sizes import check_heads, resolve_size
from keras_caption.models.translator import Translator, TranslatorOptions
from keras_caption.text import Tokenizer


class LSTMTranslatorOptions(Score, Areas, TranslatorOptions, total=False):
    """Keywords of `LSTMTranslator` that other models have too."""


@keras.saving.register_keras_serializable("keras_caption")
class LSTMTranslator(Translator):
    """LSTM encoder-decoder for translation, with dot-product attention.

    The encoder's LSTMs read the source once, from left to right. The decoder attends to
    their outputs or, with `input_area`, to areas of the outputs (section 3.1.2 of the
    area paper), see `LSTMDecoder`.

    The paper does not describe the direction of the encoder, the number of heads, the
    projections, or the decoder's initial states: the defaults are our choice. The
    released code of tensor2tensor has 4 heads (which share one attention there),
    `score="product"`, `projected="keys"`, `reversed_source=True` and
    `first_states="last"`. It also feeds attended vectors back; this model does not.

    Args:
        source, target: `keras_caption.text.Tokenizer` of the languages, or `None`.
        source_size, target_size: int, vocabulary sizes, needed without tokenizers.
        num_layers: int, number of LSTMs of encoder and decoder each.
        model_dim: int, size of embeddings and states.
        num_heads: int, number of attention heads; divides `model_dim`.
        dropout: float, dropout rate of embeddings and of the outputs of LSTMs.
        projected: str, projections of attention, `"all"` or `"keys"`. `"all"` projects
            queries, keys, values and the result.
        reversed_source: bool, whether the encoder reads from right to left.
        first_states: str, initial states of the decoder's LSTMs, `"mean"` or `"last"`.
            `"mean"` is a projection of the mean of the memory, `"last"` the last states
            of the encoder's LSTMs.
        **options: The options of `keras_caption.models.AttentionOptions` for areas of
            the input and the score, and the keywords of `Translator`. The decoder's one
            layer attends to areas unless `area_layers` is 0.

    Call arguments:
        inputs: dict of `source`, int `(batch, S)`, to EOS, then PAD, and `tokens`,
            see `Seq2Seq`.

    Raises:
        InputError: If an option has a wrong value.

    Reference:
        Li, Kaiser, Bengio, Si, "Area Attention", ICML 2019.
    """

    def __init__(
        self,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        source_size: Count | None = None,
        target_size: Count | None = None,
        num_layers: Layers = 2,
        model_dim: Count = 512,
        dropout: ShareBelowOne = 0.1,
        num_heads: Count = 1,
        projected: Literal["all", "keys"] = "all",
        reversed_source: bool = False,
        first_states: Literal["mean", "last"] = "mean",
        **options: Unpack[LSTMTranslatorOptions],
    ):
        source_size = self.source_size = resolve_size("source", source, source_size)
        target_size = self.target_size = resolve_size("target", target, target_size)
        dtype = options.get("dtype")
        check_heads(model_dim, num_heads)

        # === Encoder ===
        inputs = Text.symbolic()
        mask = Text(inputs).memory_mask(inputs)
        x = WordEmbedding(source_size, model_dim, dtype=dtype, name="source_embedding")(
            inputs["source"]
        )
        x = keras.layers.Dropout(dropout, dtype=dtype)(x)
        states = []
        for i in range(num_layers):
            x, *state = make_lstm(
                model_dim,
                return_state=True,
                go_backwards=reversed_source,
                dtype=dtype,
                name=f"encoder_{i}",
            )(x, mask=mask)
            if reversed_source:  # Keras returns outputs in the order of reading
                x = keras.ops.flip(x, axis=1)
            x = keras.layers.Dropout(dropout, dtype=dtype)(x)
            states.append(state)
        outputs = x
        if first_states == "last":
            # One tensor, (batch, num_layers, 2, model_dim), as a memory must have.
            states = [keras.ops.stack(state, axis=1) for state in states]
            outputs = {"memory": x, "states": keras.ops.stack(states, axis=1)}

        # === Decoder ===
        projects = projected == "all"
        attention = make_attention(
            num_heads,
            model_dim // num_heads,
            AttentionOptions.of(options).in_block(0),
            output_projection=projects,
            query_projection=projects,
            value_projection=projects,
            dtype=dtype,
        )
        decoder = LSTMDecoder(
            target_size,
            model_dim,
            num_layers,
            attention,
            dropout,
            has_states=first_states == "last",
            dtype=dtype,
            name="decoder",
        )
        encoder = keras.Model(inputs, outputs, name="encoder")
        super().__init__(encoder, decoder, source, target, **for_base(options))
