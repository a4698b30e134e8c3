from typing import Unpack

import keras

from keras_caption.arguments import KerasOptions
from keras_caption.decoding import Decoding
from keras_caption.inputs.text import MAX_TOKENS
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
        decoding: Of `keras_caption.models.Seq2Seq`.
        name, trainable, dtype: Of any Keras model.
    """

    generated = "translations"
    hub_task = "translation", "translation"

    def __init__(
        self,
        encoder: keras.Model,
        decoder: keras.layers.Layer,
        source: Tokenizer | None = None,
        target: Tokenizer | None = None,
        *,
        decoding: Decoding | None = None,
        **kwargs: Unpack[KerasOptions],
    ):
        super().__init__(encoder, decoder, target, decoding=decoding, **kwargs)

    @classmethod
    def default_decoding(cls) -> Decoding:
        """A beam of 4, and at most 2 n + 10 tokens for n of the source, with EOS."""
        return Decoding(
            beam_size=4,
            max_length=2 * MAX_TOKENS + 10,
            length_ratio=2.0,
            length_margin=10,
            length_penalty=0.6,
        )

    def example_call(self, images: str) -> str:
        return 'generate(["A sentence."])'

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return [x for x in (self.source, self.target) if x is not None]
