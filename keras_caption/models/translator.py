import collections.abc
from typing import Any

import keras
import numpy as np

from keras_caption.errors import InputError
from keras_caption.inputs import InputKind, Text
from keras_caption.models.seq2seq import Seq2Seq
from keras_caption.text import PAD, Tokenizer


class Translator(Seq2Seq):
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
    def kinds(self) -> list[InputKind]:
        return [Text(self.input_specs, tokenizer=self.source)]

    @property
    def tokenizers(self) -> list[Tokenizer]:
        return [x for x in (self.source, self.target) if x is not None]

    def to_batch(self, raw: Any) -> Any:
        """Turns sentences into a batch of tokens.

        Args:
            raw: List of str; or a dict with `source`, int `(batch, S)`.

        Returns:
            dict of arrays or tensors.

        Raises:
            InputError: If it is neither, or the model has no tokenizer of its source.
        """
        if isinstance(raw, collections.abc.Mapping):
            return raw
        if isinstance(raw, str) or not all(isinstance(text, str) for text in raw):
            raise InputError(
                f"Sentences should be a list of str. Received: {raw!r:.100}"
            )
        if self.source is None:
            raise InputError(
                f"The model '{self.name}' was made without a source tokenizer: it "
                "reads a dict of `source`, no strings."
            )
        rows = [self.source.encode(text)[1:] for text in raw]
        tokens = np.full((len(rows), max(map(len, rows), default=0)), PAD, "int32")
        for row, ids in zip(tokens, rows, strict=True):
            row[: len(ids)] = ids
        return {"source": tokens}

    def translate(
        self, sentences: list[str], batch_size: int = 64, **options: Any
    ) -> list[str]:
        """Translates any number of sentences, in batches of similar length.

        Args:
            sentences: List of str. An empty one has an empty translation.
            batch_size: int, number of sentences that are translated at once.
            **options: Options of `generate_tokens`.

        Returns:
            A list of str.
        """
        translations = [""] * len(sentences)
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        order = [i for i in order if sentences[i].strip()]
        for start in range(0, len(order), batch_size):
            indices = order[start : start + batch_size]
            generated = self.generate([sentences[i] for i in indices], **options)
            for i, translation in zip(indices, generated, strict=True):
                translations[i] = translation
        return translations

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["vocabulary"]  # that is `target`
        return config
