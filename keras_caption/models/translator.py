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
        name, trainable, dtype: Of any Keras model.
    """

    generated = "translations"

    def __init__(
        self,
        encoder: keras.Model,
        decoder: keras.layers.Layer,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
    ):
        # Its `vocabulary` is `target`, and no argument of its own.
        super().__init__(
            encoder, decoder, target, name=name, trainable=trainable, dtype=dtype
        )

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return [x for x in (self.source, self.target) if x is not None]
