import re
from collections.abc import Iterable
from typing import Any, Self

from keras_caption.base.registration import serializable
from keras_caption.text.normalization import (
    SPACES,
    Punctuation,
    canonical,
    canonical_in_graph,
)
from keras_caption.text.vocabulary import Vocabulary

# Suffix of a piece that continues in the next token, as subword-nmt writes it.
CONTINUED = "@@"
JOINT = rf"{CONTINUED}( |$)"


@serializable
class WordTokenizer(Vocabulary):
    """Tokenizer of text whose tokens are separated by white space.

    It reads text that was tokenized before. In byte-pair encoded text, a piece that
    ends in `@@` belongs to the word of the next piece; `decode` joins them.

    Args:
        words: List of distinct str without white space, without the special tokens.

    Raises:
        InputError: If a word is not a str, is empty, has white space or occurs twice.

    Example:

    ```python
    tokenizer = WordTokenizer.build(sentences, min_count=1)
    tokens = tokenizer.encode("a wooden play@@ house .")
    sentence = tokenizer.decode(tokens)                # "a wooden playhouse ."
    ```
    """

    def __init__(self, words: Iterable[str]):
        super().__init__(words)

    @staticmethod
    def split(text: str, punctuation: Punctuation = "unicode") -> list[str]:
        return canonical(text).split()

    @staticmethod
    def join(words: list[str]) -> str:
        return re.sub(JOINT, "", " ".join(words))

    def as_decoded(self, text: str) -> str:
        return self.join(self.split(text))

    def join_pieces(self, ids: Any) -> Any:
        import tensorflow as tf

        return tf.strings.regex_replace(super().join_pieces(ids), JOINT, "")

    @staticmethod
    def normalize_in_graph(
        texts: Any, is_nfc: bool = False, punctuation: Punctuation = "unicode"
    ) -> Any:
        import tensorflow as tf

        texts = canonical_in_graph(texts, is_nfc=is_nfc)
        return tf.strings.regex_replace(texts, f"[{SPACES}]", " ")

    def get_config(self) -> dict[str, Any]:
        return {"words": super().get_config()["words"]}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)
