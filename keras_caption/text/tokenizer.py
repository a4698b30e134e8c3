"""The base class of tokenizers, in Python and in graphs, and the special tokens.

Ids 0 to 3 are PAD, BOS (begin), EOS (end) and UNK (unknown), whatever the tokenizer.
"""

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.base.validation import is_unicode
from keras_caption.text.normalization import canonical

PAD, BOS, EOS, UNK = range(4)
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
MAX_TOKENS = 1024  # of a sentence with EOS; attention takes memory for its square


class Tokenizer(abc.ABC):
    """Base of tokenizers: turns text into token ids and back.

    `encode` and `decode` take one text in Python, without TensorFlow. `tokenize` and
    `detokenize` take a batch inside a TensorFlow graph, and return the same. All
    normalize text to Unicode's NFC. Text yields no special token except UNK: `"<eos>"`
    is an ordinary word.

    A subclass implements `__len__`, `to_ids`, `to_text`, `tokenize`, `join_pieces`
    and `trackables`. It is registered with Keras, and its config is its complete state,
    so that Keras saves it with a model.

    Attributes:
        asset: Tuple of the argument that holds the vocabulary, and of the name of its
            file in a preset: lines of a `.txt`, or the bytes of a SentencePiece model.
            `None` for a tokenizer without such a file.
    """

    asset: ClassVar[tuple[str, str] | None] = None

    @abc.abstractmethod
    def __len__(self) -> int:
        """Returns the vocabulary size, special tokens included."""

    @abc.abstractmethod
    def to_ids(self, text: str) -> list[int]:
        """Converts a text to token ids, without BOS and EOS."""

    @abc.abstractmethod
    def to_text(self, ids: list[int]) -> str:
        """Converts token ids, without PAD, BOS and EOS, to text."""

    @abc.abstractmethod
    def tokenize(self, texts: Any) -> Any:
        """Converts a batch of texts to token ids, without BOS and EOS.

        Args:
            texts: string `(batch,)`, TensorFlow tensor in UTF-8.

        Returns:
            int32 `(batch, None)`, ragged.
        """

    def tokenize_nfc(self, texts: Any) -> Any:
        """Tokenizes texts that are in Unicode's NFC already.

        Word tokenizers then need no TensorFlow Text: an exported captioner needs
        TensorFlow alone.
        """
        return self.tokenize(texts)

    @abc.abstractmethod
    def join_pieces(self, ids: Any) -> Any:
        """Converts a batch of token ids, without PAD, BOS and EOS, to texts.

        Args:
            ids: int32 `(batch, None)`, ragged.

        Returns:
            string `(batch,)`.
        """

    @abc.abstractmethod
    def trackables(self) -> Any:
        """Returns the resources of traced graphs that a SavedModel must track."""

    def is_known(self, token: int) -> bool:
        """Returns whether a token id stands for known text: not UNK, not a byte."""
        return token > UNK

    def is_space(self, token: int) -> bool:
        """Returns whether a token id stands for white space alone."""
        return False

    def shares_ids(self, other: "Tokenizer") -> bool:
        """Returns whether another tokenizer has the same meaning for every id."""
        return self == other

    def encode(self, text: str, max_tokens: int | None = None) -> list[int]:
        """Converts a text to token ids, from BOS to EOS.

        Args:
            text: str.
            max_tokens: int, number of tokens after which the text is truncated.
                Defaults to `None`, no truncation.

        Returns:
            A list of int.
        """
        return [BOS, *self.to_ids(text)[:max_tokens], EOS]

    def decode(self, tokens: Sequence[int]) -> str:
        """Converts token ids up to the first EOS to text.

        Args:
            tokens: Sequence of int. PAD, BOS and what follows the first EOS are
                skipped.

        Returns:
            str.

        Raises:
            InputError: If a token id is not in the vocabulary, or no int.
        """
        ids, size = [], len(self)
        for token in tokens:
            try:
                is_known = 0 <= token < size and int(token) == token
            except (TypeError, ValueError):  # such as a text of a batch
                raise InputError(
                    f"Tokens of a text must be ints, received {token!r:.60}."
                ) from None
            if not is_known:
                raise InputError(
                    f"Token {token} is not one of the {size} of this vocabulary; "
                    "it comes from another vocabulary."
                )
            if token == EOS:
                break
            if token not in (PAD, BOS):
                ids.append(int(token))
        return self.to_text(ids)

    def as_decoded(self, text: str) -> str:
        """Normalizes a reference like decoded text, which is scored against it."""
        return canonical(text)

    def detokenize(self, tokens: Any) -> Any:
        """Converts a batch of token ids, each up to its first EOS, to texts.

        Args:
            tokens: int `(batch, T)`, TensorFlow tensor.

        Returns:
            string `(batch,)`, UTF-8.
        """
        import tensorflow as tf

        tokens = tf.cast(tokens, tf.int32)
        ended = tf.cumsum(tf.cast(tokens == EOS, tf.int32), axis=1) > 0
        kept = ~ended & (tokens != PAD) & (tokens != BOS)
        return self.join_pieces(tf.ragged.boolean_mask(tokens, kept))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.get_config() == self.get_config()

    __hash__ = None  # type: ignore[assignment]  # typeshed's `object` has a function

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


def have_same_ids(first: Any, second: Any) -> bool:
    """Returns whether tokenizers, or lists of answers, assign the same ids.

    Args:
        first, second: `Tokenizer`, list of str, or `None`.
    """
    if isinstance(first, Tokenizer) and isinstance(second, Tokenizer):
        return first.shares_ids(second)
    return first == second


def check_strings(values: Iterable[str], noun: str) -> Iterable[str]:
    """Raises `InputError` unless values are an iterable of str; returns them.

    Args:
        values: Argument of a user.
        noun: str, name of the values in the message.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"{noun} must be a list of str, received {values!r:.60}.")
    return values


def static_table(keys: Any, values: Any, default: int) -> Any:
    """Makes a TensorFlow table from strings to ids, int32, or `default`."""
    import tensorflow as tf

    # Outside the graph that is being traced: all graphs share one table.
    with tf.init_scope():
        entries = tf.lookup.KeyValueTensorInitializer(
            tf.constant([*keys], tf.string), tf.constant([*values], tf.int32)
        )
        return tf.lookup.StaticHashTable(entries, default)


def check_texts(texts: Any, noun: str) -> None:
    """Refuses what is no list of str, or holds no Unicode text.

    Args:
        texts: What a user gave.
        noun: str, what one of the texts is called in messages.

    Raises:
        InputError: If the texts are no list of str, or one is not Unicode.
    """
    is_list = isinstance(texts, (list, tuple, np.ndarray))
    if not is_list or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{noun}s should be a list of str. Received: {texts!r:.100}")
    for number, text in enumerate(texts):
        if not is_unicode(text):
            raise InputError(
                f"{noun} {number} has half of a surrogate pair, which is no Unicode "
                f"text: {text!r:.100}"
            )
