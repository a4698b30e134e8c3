import collections
import functools
from collections.abc import Iterable
from typing import Any, Self

from keras_caption.base.arguments import Count, check
from keras_caption.base.errors import InputError
from keras_caption.base.registration import serializable
from keras_caption.base.validation import is_unicode
from keras_caption.text.normalization import (
    Punctuation,
    canonical,
    normalize_in_graph,
    split_words,
)
from keras_caption.text.tokenizer import (
    SPECIAL_TOKENS,
    UNK,
    Tokenizer,
    check_strings,
    static_table,
)


@serializable
class Vocabulary(Tokenizer):
    """Tokenizer of captions by words.

    Ids 0 to 3 are PAD, BOS (beginning), EOS (end) and UNK (unknown words); the words
    follow in the given order. `len` is the vocabulary size, special tokens included.
    Captions are normalized by `split_words`.

    Args:
        words: Iterable of distinct str without white space, without the special
            tokens.
        punctuation: str, which characters are punctuation: `"unicode"`, or `"ascii"` as
            in vocabularies saved by version 0.1. Defaults to `"unicode"`.

    Attributes:
        words: List of str, the word of each token id, special tokens included.

    Raises:
        InputError: If a word is not a str, is empty, has white space or occurs twice.

    Example:

    ```python
    vocabulary = Vocabulary.build(captions, min_count=5)
    tokens = vocabulary.encode("A dog on a beach.")    # [1, 4, 9, ..., 2]
    caption = vocabulary.decode(tokens)                # "a dog on a beach"
    ```
    """

    asset = "words", "vocabulary.txt"

    def __init__(self, words: Iterable[str], punctuation: Punctuation = "unicode"):
        check(Punctuation, punctuation=punctuation)
        self.punctuation = punctuation
        self.words = [*SPECIAL_TOKENS, *check_words(words)]
        first = len(SPECIAL_TOKENS)
        self._ids = {word: i for i, word in enumerate(self.words[first:], first)}
        if len({*self.words}) < len(self.words):
            counts = collections.Counter(self.words)
            raise InputError(
                "Words of a vocabulary must be distinct and none of "
                f"{', '.join(SPECIAL_TOKENS)}. "
                f"More than once: {[w for w, n in counts.items() if n > 1][:5]}"
            )

    @classmethod
    def build(cls, captions: Iterable[str], min_count: int = 5) -> Self:
        """Builds the vocabulary of a set of captions.

        Keeps the words that occur at least `min_count` times, the most frequent
        first, words of the same frequency in alphabetical order.

        The number of words depends on the images of the captions:
        `keras_caption.datasets.build_vocabulary` counts the captions of the training
        images or, as for the published vocabularies of COCO, of all images.

        Args:
            captions: Iterable of str.
            min_count: int, at least 1, the least number of occurrences. Defaults to 5.

        Raises:
            InputError: If no word occurs `min_count` times.
        """
        check(Count, min_count=min_count)
        counts: collections.Counter[str] = collections.Counter()
        for caption in check_strings(captions, "Captions"):
            counts.update(cls.split(caption))
        frequent = [word for word, count in counts.items() if count >= min_count]
        frequent = [word for word in frequent if word not in SPECIAL_TOKENS]
        if not frequent:
            raise InputError(
                f"No word of the text occurs min_count={min_count} times; the "
                f"greatest count is {max(counts.values(), default=0)}."
            )
        return cls(sorted(frequent, key=lambda word: (-counts[word], word)))

    @staticmethod
    def split(text: str, punctuation: Punctuation = "unicode") -> list[str]:
        """Splits a text into normalized words."""
        return split_words(text, punctuation)

    @staticmethod
    def join(words: list[str]) -> str:
        """Joins words to a text."""
        return " ".join(words)

    def __len__(self) -> int:
        return len(self.words)

    def to_ids(self, text: str) -> list[int]:
        words = self.split(text, self.punctuation)
        return [self._ids.get(word, UNK) for word in words]

    def shares_ids(self, other: Tokenizer) -> bool:
        return type(other) is type(self) and other.words == self.words

    def to_text(self, ids: list[int]) -> str:
        return self.join([self.words[i] for i in ids])

    def tokenize(self, texts: Any) -> Any:
        words = self.normalize_in_graph(texts, False, self.punctuation)
        return self._look_up_words(words)

    def tokenize_nfc(self, texts: Any) -> Any:
        words = self.normalize_in_graph(texts, True, self.punctuation)
        return self._look_up_words(words)

    def _look_up_words(self, texts):
        import tensorflow as tf

        return self.look_up(tf.strings.split(texts))

    def look_up(self, words: Any) -> Any:
        """Looks up the token ids of words in a TensorFlow graph.

        Args:
            words: string `(batch, None)`, ragged.

        Returns:
            int32 `(batch, None)`, ragged.
        """
        import tensorflow as tf

        return tf.ragged.map_flat_values(self._table.lookup, words)

    def join_pieces(self, ids: Any) -> Any:
        import tensorflow as tf

        words = tf.ragged.map_flat_values(lambda i: tf.gather(self.words, i), ids)
        return tf.strings.reduce_join(words, axis=-1, separator=" ")

    @staticmethod
    def normalize_in_graph(
        texts: Any, is_nfc: bool = False, punctuation: Punctuation = "unicode"
    ) -> Any:
        """Normalizes texts to the words of `split`, separated by spaces."""
        return normalize_in_graph(texts, is_nfc, punctuation)

    def trackables(self) -> Any:
        return self._table

    @functools.cached_property
    def _table(self):
        return static_table(self._ids, self._ids.values(), UNK)

    def get_config(self) -> dict[str, Any]:
        words = self.words[len(SPECIAL_TOKENS) :]
        return {"words": words, "punctuation": self.punctuation}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{"punctuation": "ascii", **config})  # as saved by version 0.1


def check_words(words: Iterable[str]) -> list[str]:
    """Returns words as a list, in NFC; raises `InputError` if one is not a word."""
    checked = []
    for index, word in enumerate(check_strings(words, "Words")):
        text = canonical(word) if is_unicode(word) else ""
        if text.split() != [text]:
            raise InputError(
                f"Word {index} of the vocabulary must be a str without white space, "
                f"received {word!r:.60}."
            )
        checked.append(text)
    return checked
