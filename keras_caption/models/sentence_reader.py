import collections.abc
from typing import Any

import numpy as np

from keras_caption.errors import InputError
from keras_caption.models.input_reader import InputReader
from keras_caption.text import PAD


class SentenceReader(InputReader):
    """Reads sentences too, by a tokenizer `source`, if there is one."""

    def to_batch(self, raw: Any) -> Any:
        """Turns sentences into a batch of tokens.

        Args:
            raw: List of str; or a dict of arrays or tensors.

        Returns:
            dict of arrays or tensors.

        Raises:
            InputError: If it is neither.
        """
        if self.source is None or isinstance(raw, collections.abc.Mapping):
            return super().to_batch(raw)
        if isinstance(raw, str) or not all(isinstance(text, str) for text in raw):
            raise InputError(
                f"Sentences should be a list of str. Received: {raw!r:.100}"
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
