import itertools
import re
from collections.abc import Iterable
from typing import Any, Self

from keras_caption.base.registration import serializable
from keras_caption.text.normalization import (
    SEPARATORS,
    Punctuation,
    canonical,
    canonical_in_graph,
    fold,
    fold_in_graph,
)
from keras_caption.text.vocabulary import Vocabulary

MAX_QUESTION_TOKENS = 14  # of a question; MCAN's code truncates longer ones
# British and American spellings of words in questions about photos.
SPELLINGS = (
    ("aeroplane", "airplane"),
    ("aeroplanes", "airplanes"),
    ("centre", "center"),
    ("colour", "color"),
    ("coloured", "colored"),
    ("colours", "colors"),
    ("doughnut", "donut"),
    ("doughnuts", "donuts"),
    ("grey", "gray"),
    ("moustache", "mustache"),
    ("tyre", "tire"),
    ("tyres", "tires"),
)
DELETED = r"[.,'!?\"()*#:;]"


@serializable
class QuestionTokenizer(Vocabulary):
    """Tokenizer of questions, normalized as in MCAN's released code.

    Words are in lower case; the characters `. , ' ! ? " ( ) * # : ;` are deleted, and
    so is punctuation beyond ASCII, such as curly quotes; hyphens, dashes and slashes
    separate words. The first 14 words are kept. If only the other spelling of a word is
    known, such as `color` for `colour`, the word is read as that spelling. A question
    has neither BOS nor EOS: `to_ids` returns its tokens, `tokenize` those of a batch.

    Args:
        words: Iterable of distinct str without white space, without the special
            tokens.
        punctuation: See `Vocabulary`.

    Raises:
        InputError: If a word is not a str, is empty, has white space or occurs twice.

    Example:

    ```python
    tokenizer = QuestionTokenizer.build(questions)
    tokens = tokenizer.to_ids("What's the man's t-shirt?")   # whats the mans t shirt
    ```
    """

    def __init__(self, words: Iterable[str], punctuation: Punctuation = "unicode"):
        super().__init__(words, punctuation)
        for spellings in SPELLINGS:
            for known, other in itertools.permutations(spellings):
                if known in self._ids:
                    self._ids.setdefault(other, self._ids[known])

    @classmethod
    def build(cls, questions: Iterable[str], min_count: int = 1) -> Self:
        """Builds the tokenizer of a set of questions; see `Vocabulary.build`.

        Args:
            questions: Iterable of str.
            min_count: int, the least number of occurrences of a word. Defaults to 1:
                MCAN's code keeps every word.
        """
        return super().build(questions, min_count)

    @staticmethod
    def split(text: str, punctuation: Punctuation = "unicode") -> list[str]:
        text = fold(text) if punctuation == "unicode" else text
        text = re.sub(DELETED, "", canonical(text, lower=True))
        return text.replace("-", " ").replace("/", " ").split()

    @staticmethod
    def normalize_in_graph(
        texts: Any, is_nfc: bool = False, punctuation: Punctuation = "unicode"
    ) -> Any:
        import tensorflow as tf

        texts = fold_in_graph(texts) if punctuation == "unicode" else texts
        texts = canonical_in_graph(texts, lower=True, is_nfc=is_nfc)
        texts = tf.strings.regex_replace(texts, DELETED, "")
        return tf.strings.regex_replace(texts, SEPARATORS, " ")

    def to_ids(self, text: str) -> list[int]:
        return super().to_ids(text)[:MAX_QUESTION_TOKENS]

    def tokenize(self, texts: Any) -> Any:
        return super().tokenize(texts)[:, :MAX_QUESTION_TOKENS]
