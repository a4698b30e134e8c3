from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_caption.apps.serve.lite_predictor import LitePredictor
from keras_caption.base.errors import InputError
from keras_caption.predict import Example
from keras_caption.text.tokenizer import MAX_TOKENS, check_texts


class LiteTranslator(LitePredictor):
    """Translates sentences with a file of LiteRT, see `LitePredictor`."""

    noun = "sentence"
    reads = ("source",)

    @staticmethod
    def takes(described: dict[str, Any]) -> bool:
        return {*described.get("inputs", ())} == {"source"}

    def read(self, record: Mapping[str, Any], place: int = 0) -> Example:
        """Reads and checks one record, see `Predictor.read`."""
        if [*record] != ["source"]:
            raise InputError(f"Record {place} should have a source alone.")
        check_texts([record["source"]], "Sentence")
        assert self.source is not None  # as it is an input
        tokens = self.source.encode(record["source"])[1:]
        if len(tokens) > MAX_TOKENS:
            raise InputError(f"Sentence {place} has more than {MAX_TOKENS:,} tokens.")
        values = {"source": np.array(tokens, "int32")}
        return Example(place, values, has_words=len(tokens) > 1)  # the last is EOS
