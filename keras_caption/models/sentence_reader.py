import collections.abc
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Unpack

import numpy as np

from keras_caption.base.arguments import Count, check
from keras_caption.base.errors import InputError, NoTextError
from keras_caption.base.progress import progress
from keras_caption.decoding import DecodingOptions, with_decoding
from keras_caption.decoding.text_options import check_prefixes
from keras_caption.inputs.text import MAX_TOKENS
from keras_caption.models.generation import Generation
from keras_caption.models.input_reader import is_whole
from keras_caption.predict import BATCH_SIZE, Columns, Fault, Rows, run_batches
from keras_caption.text import PAD
from keras_caption.text.tokenizer import check_texts


class SentenceReader(Generation):
    """Mixin of models and ensembles that reads sentences by a tokenizer, `source`."""

    def to_batch(self, raw: Any) -> Any:
        """Turns sentences into a batch of tokens.

        Args:
            raw: List of str; or a dict of arrays or tensors.

        Returns:
            dict of arrays or tensors.

        Raises:
            InputError: If `raw` is neither.
        """
        if self.source is None or isinstance(raw, collections.abc.Mapping):
            return super().to_batch(raw)
        return {"source": pad(self.source_tokens(raw))}

    def examples_of(self, raw: Any, batch_size: int, first: int = 0) -> Columns:
        """Wraps any number of examples. Sentences are tokenized once."""
        raw = raw if self.source is None else self.to_batch(raw)
        return super().examples_of(raw, batch_size, first)

    def source_tokens(self, sentences: Any) -> list[list[int]]:
        """Tokens of each sentence, EOS included.

        Raises:
            InputError: If the model has no tokenizer of sentences, the sentences are no
                list of str, or one is not Unicode.
        """
        if self.source is None:
            raise InputError(f"The model '{self.name}' has no tokenizer of sentences.")
        check_texts(sentences, "Sentence")
        return [self.source.encode(text)[1:] for text in sentences]  # without BOS

    @with_decoding
    def translate(
        self,
        sentences: Iterable[str],
        batch_size: int = BATCH_SIZE,
        report: Callable[[int, str, bool], None] | None = None,
        *,
        n: int | None = None,
        attention: bool = False,
        **options: Unpack[DecodingOptions],
    ) -> list[Any]:
        """Translates any number of sentences, in batches of similar length.

        Args:
            sentences: Iterable of str. The translation of a sentence is empty if it has
                no token, or more than `keras_caption.inputs.text.MAX_TOKENS`.
            batch_size: int, number of sentences in a batch.
            report: Function that is called for each faulty sentence with its place, a
                description of the fault, and whether it is translated nonetheless.
                Sentences of unknown words only are translated. If omitted, a warning
                counts the sentences of too many tokens.
            n, attention, **options: As in `generate`.

        Returns:
            A list of str; with `n` or `attention`, of the entries that `generate`
            returns. An empty translation is "" or, with `n`, an empty list.

        Raises:
            InputError: If the sentences are no list of str, or as in `generate`.
            NoTextError: As in `generate`, unless there is a `report`.
        """
        if options.get("stream"):
            raise InputError("`translate` has no `stream`: `generate` has.")
        if not is_whole(sentences):
            sentences = list(sentences)
        check(Count, batch_size=batch_size)
        tokens = self.source_tokens(sentences)
        self._check_vocabulary()
        decoding = self.decoding_of(n, options)
        check_prefixes(decoding, len(tokens), "sentence")
        self._report(tokens, report)
        # A sentence without words has EOS only.
        usable = [i for i, ids in enumerate(tokens) if 1 < len(ids) <= MAX_TOKENS]
        examples = Rows(
            [{"source": np.array(tokens[i], "int32")} for i in usable], usable
        )

        def run(values, places):
            inputs = self.read(values)
            return self.generate_batch(inputs, places, n, decoding, attention)

        translated = ["" if n is None else [] for _ in tokens]
        faults = None if report is None else NoTextError
        results = run_batches(examples, run, batch_size, self.fill, faults)
        bar = progress(
            results, "Translating", len(usable), unit="sentences", leave=False
        )
        for index, result in bar:
            place = usable[index]
            if not isinstance(result, Fault):
                translated[place] = self.texts_of(result, n, attention)
            elif report is not None and isinstance(result.error, NoTextError):
                report(place, f"has no translation: {result.error.reason}", False)
        return translated

    def _report(self, tokens, report):
        """Reports sentences of too many tokens, and those of unknown words only."""
        too_long = [i for i, ids in enumerate(tokens) if len(ids) > MAX_TOKENS]
        if report is None:
            if too_long:
                warnings.warn(
                    f"{len(too_long)} of {len(tokens)} sentences have more than "
                    f"{MAX_TOKENS:,} tokens and are not translated.",
                    stacklevel=3,
                )
            return
        for i in too_long:
            report(
                i, f"has more than {MAX_TOKENS:,} tokens and is not translated", False
            )
        for i, ids in enumerate(tokens):
            words = ids[:-1]  # without EOS
            known = len(ids) > MAX_TOKENS or any(map(self.source.is_known, words))
            if words and not known:
                report(i, "has unknown words only", True)


def pad(rows: list[list[int]]) -> np.ndarray:
    """Pads lists of tokens at the end: int32 `(len(rows), longest)`."""
    tokens = np.full((len(rows), max(map(len, rows), default=0)), PAD, "int32")
    for row, ids in zip(tokens, rows, strict=True):
        row[: len(ids)] = ids
    return tokens
