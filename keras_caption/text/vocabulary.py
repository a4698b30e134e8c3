import collections
from collections.abc import Iterable, Sequence
from typing import Any, Self

import keras

from keras_caption.arguments import Count, check
from keras_caption.errors import InputError
from keras_caption.text.normalization import split_words

PAD, BOS, EOS, UNK = range(4)
SPECIAL_WORDS = ("<pad>", "<bos>", "<eos>", "<unk>")


@keras.saving.register_keras_serializable("keras_caption")
class Vocabulary:
    """The words of a model and their token ids.

    Ids 0 to 3 are PAD, BOS (beginning), EOS (end) and UNK (unknown words); the words
    follow in the given order. `len` is the vocabulary size, special tokens included.

    Args:
        words: Iterable of distinct str without white space, without the special words.

    Attributes:
        words: List of str, the word of each token id, special words included.

    Raises:
        InputError: If a word is not a str, is empty, has white space, is a special
            word or occurs twice.

    Example:

    ```python
    vocabulary = Vocabulary.build(captions, min_count=5)
    tokens = vocabulary.encode("A dog on a beach.")    # [1, 4, 9, ..., 2]
    caption = vocabulary.decode(tokens)                # "a dog on a beach"
    ```
    """

    def __init__(self, words: Iterable[str]):
        self.words = [*SPECIAL_WORDS, *check_words(words)]
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            counts = collections.Counter(self.words)
            raise InputError(
                "Words of a vocabulary must be distinct and none of "
                f"{', '.join(SPECIAL_WORDS)}. "
                f"More than once: {[w for w, n in counts.items() if n > 1][:5]}"
            )

    @classmethod
    def build(cls, captions: Iterable[str], min_count: int = 5) -> Self:
        """Builds the vocabulary of a set of captions.

        Keeps the words that occur at least `min_count` times, the most frequent
        first, words of the same frequency in alphabetical order.

        The number of words depends on the images of the captions:
        `keras_caption.data.build_vocabulary` counts the captions of the training
        images or, as for the published vocabularies of COCO, of all images.

        Args:
            captions: Iterable of str.
            min_count: int, at least 1, the least number of occurrences. Defaults to 5.

        Raises:
            InputError: If no word occurs `min_count` times.
        """
        check(Count, min_count=min_count)
        counts = collections.Counter()
        for caption in captions:
            counts.update(split_words(caption))
        frequent = [word for word, count in counts.items() if count >= min_count]
        if not frequent:
            raise InputError(
                f"No word of the captions occurs min_count={min_count} times; the "
                f"greatest count is {max(counts.values(), default=0)}."
            )
        return cls(sorted(frequent, key=lambda word: (-counts[word], word)))

    def encode(self, caption: str, max_words: int | None = None) -> list[int]:
        """Encodes a caption as token ids, from BOS to EOS.

        Args:
            caption: str.
            max_words: int, number of words after which the caption is truncated.
                Defaults to `None`, no truncation.

        Returns:
            A list of int.
        """
        words = split_words(caption)[:max_words]
        return [BOS, *(self._ids.get(word, UNK) for word in words), EOS]

    def decode(self, tokens: Sequence[int]) -> str:
        """Decodes token ids to the caption between BOS and EOS.

        Args:
            tokens: Sequence of int. Tokens after the first EOS are ignored.

        Returns:
            str.

        Raises:
            ValueError: If a token is not in the vocabulary.
        """
        words = []
        for token in tokens:
            if not 0 <= token < len(self):
                raise ValueError(
                    f"Token {token} is not one of the {len(self)} of this vocabulary; "
                    "it comes from another vocabulary."
                )
            if token == EOS:
                break
            if token not in (PAD, BOS):
                words.append(self.words[token])
        return " ".join(words)

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.words == other.words

    __hash__ = None

    def get_config(self) -> dict[str, Any]:
        return {"words": self.words[len(SPECIAL_WORDS) :]}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


def check_words(words: Iterable[str]) -> list[str]:
    """Returns the words as a list; raises `InputError` if one is not a word."""
    if isinstance(words, str):
        raise InputError(f"Words must be a list of str, received {words!r:.60}.")
    words = list(words)
    for index, word in enumerate(words):
        if not isinstance(word, str) or word.split() != [word]:
            raise InputError(
                f"Word {index} of the vocabulary must be a str without white space, "
                f"received {word!r:.60}."
            )
    return words
