from typing import Any

import keras

from keras_caption.models.sentence_reader import SentenceReader
from keras_caption.models.seq2seq import Seq2Seq
from keras_caption.text import Tokenizer


class Translator(SentenceReader, Seq2Seq):
    """Base of translation models: sentences in, sentences out.

    A subclass makes encoder and decoder of arguments of its own.

    Args:
        encoder: Functional Keras model of `source`, int `(batch, S)`, to the memory.
        decoder: Layer from `tokens`, the memory and its mask to logits.
        source: `keras_caption.text.Tokenizer` of the source language, or `None`: then
            the model reads tokens only.
        target: `keras_caption.text.Tokenizer` of the target language, or `None`: then
            the model generates tokens only.
        dtype: Keras dtype policy of the model, or its name.
    """

    generated = "translations"

    def __init__(
        self,
        encoder: keras.Model,
        decoder: keras.layers.Layer,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ):
        self.source = source
        self.target = target
        super().__init__(encoder, decoder, target, dtype=dtype, **kwargs)

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return [x for x in (self.source, self.target) if x is not None]

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["vocabulary"]  # that is `target`
        return config
