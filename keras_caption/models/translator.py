from typing import Unpack

import keras

from keras_caption.base.arguments import KerasOptions
from keras_caption.decoding import Decoding
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.models.sentence_reader import SentenceReader
from keras_caption.models.seq2seq import Seq2Seq
from keras_caption.text import Tokenizer


class TranslatorOptions(KerasOptions, total=False):
    """Keywords of every translator, which `Translator` describes."""

    decoding: Decoding | None


class Translator(SentenceReader, Seq2Seq):
    """Base of translation models: sentences in, sentences out.

    A subclass builds encoder and decoder from its own arguments.

    Args:
        encoder: Functional Keras model from `source`, int `(batch, S)`, to the memory.
        decoder: Layer from `tokens`, the memory and its mask to logits.
        source: `keras_caption.text.Tokenizer` of the source language. If `None`, the
            model reads tokens only.
        target: `keras_caption.text.Tokenizer` of the target language. If `None`, the
            model generates tokens only.
        decoding: As in `keras_caption.models.Seq2Seq`.
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
        self.source = source
        self.target = target

    @classmethod
    def default_decoding(cls) -> Decoding:
        """Beam search of width 4, with at most 2 n + 10 tokens for n source tokens."""
        return Decoding(
            beam_size=4,  # with a penalty of 0.6, as in the Transformer's paper
            max_length=2 * MAX_TOKENS + 10,  # never below the limit by the ratio
            length_ratio=2.0,
            length_margin=10,
            length_penalty=0.6,
        )

    def example_call(self, images: str) -> str:
        return 'generate(["A sentence."])'

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return [x for x in (self.source, self.target) if x is not None]
