"""What all tokenizers share: special tokens, and both ways in Python and in graphs.

Ids 0 to 3 are PAD, BOS (begin), EOS (end) and UNK (unknown), whatever the tokenizer.
"""

import abc
import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from keras_caption.errors import InputError
from keras_caption.text.normalization import canonical

PAD, BOS, EOS, UNK = range(4)
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer(abc.ABC):
    """Base of tokenizers: turns text into token ids and back.

    `encode` and `decode` take one text in Python, without TensorFlow. `tokenize` and
    `detokenize` take a batch inside a TensorFlow graph, and give the same. All read
    text in Unicode's NFC. Text yields no special token but UNK: `"<eos>"` is a word as
    any other.

    A subclass implements `__len__`, `to_ids`, `to_text`, `tokenize`, `join_pieces`
    and `trackables`. It is registered with Keras, and its config holds all it knows:
    so it is saved within a model.

    Attributes:
        asset: Tuple of the argument that holds most of what it knows, and of the name
            of the file that a preset has it in: lines of a `.txt`, or the bytes of a
            SentencePiece model; or `None`, for a tokenizer without such a file.
    """

    asset: ClassVar[tuple[str, str] | None] = None

    @abc.abstractmethod
    def __len__(self) -> int:
        """Vocabulary size, special tokens included."""

    @abc.abstractmethod
    def to_ids(self, text: str) -> list[int]:
        """Token ids of a text, without BOS and EOS."""

    @abc.abstractmethod
    def to_text(self, ids: list[int]) -> str:
        """Text of token ids, none of which is PAD, BOS or EOS."""

    @abc.abstractmethod
    def tokenize(self, texts: Any) -> Any:
        """Token ids of a batch of texts, without BOS and EOS.

        Args:
            texts: string `(batch,)`, TensorFlow tensor in UTF-8.

        Returns:
            int32 `(batch, None)`, ragged.
        """

    def tokenize_nfc(self, texts: Any) -> Any:
        """Returns what `tokenize` does, of texts that are in Unicode's NFC.

        Tokenizers of words then need no TensorFlow Text: an exported captioner runs
        where there is only TensorFlow.
        """
        return self.tokenize(texts)

    @abc.abstractmethod
    def join_pieces(self, ids: Any) -> Any:
        """Texts of token ids, none of which is PAD, BOS or EOS.

        Args:
            ids: int32 `(batch, None)`, ragged.

        Returns:
            string `(batch,)`.
        """

    @abc.abstractmethod
    def trackables(self) -> Any:
        """What a SavedModel must track of `tokenize` and `detokenize`, once traced."""

    def is_known(self, token: int) -> bool:
        """Whether a token id stands for something of the text the tokenizer knows."""
        return token > UNK

    def is_space(self, token: int) -> bool:
        """Whether a token id stands for white space alone."""
        return False

    def shares_ids(self, other: "Tokenizer") -> bool:
        """Whether a token id stands for the same with another tokenizer."""
        return self == other

    def encode(self, text: str, max_tokens: int | None = None) -> list[int]:
        """Token ids of a text, from BOS to EOS.

        Args:
            text: str.
            max_tokens: int, the text is cut after so many tokens; if omitted, it is
                not.

        Returns:
            A list of int.
        """
        return [BOS, *self.to_ids(text)[:max_tokens], EOS]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids up to the first EOS.

        Args:
            tokens: Sequence of int. PAD, BOS and what follows the first EOS are
                skipped.

        Returns:
            str.

        Raises:
            InputError: If a token is not one of the tokenizer's.
        """
        ids = []
        for token in tokens:
            if not 0 <= token < len(self):
                raise InputError(
                    f"Token {token} is not one of the {len(self)} of this vocabulary; "
                    "it comes from another vocabulary."
                )
            if token == EOS:
                break
            if token not in (PAD, BOS):
                ids.append(int(token))
        return self.to_text(ids)

    def as_decoded(self, text: str) -> str:
        """A reference as `decode` would write it, to score decoded text against."""
        return canonical(text)

    def detokenize(self, tokens: Any) -> Any:
        """Texts of a batch of token ids, each up to its first EOS.

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

    __hash__ = None

    @abc.abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Arguments of the constructor."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


def have_same_ids(first: Any, second: Any) -> bool:
    """Whether tokenizers, or lists of answers, mean the same by each id.

    Args:
        first, second: `Tokenizer`, list of str, or `None`.
    """
    if isinstance(first, Tokenizer) and isinstance(second, Tokenizer):
        return first.shares_ids(second)
    return first == second


def check_strings(values: Iterable[str], noun: str) -> Iterable[str]:
    """Returns what should be a list of str; raises `InputError` if it is no list.

    Args:
        values: What a user gave.
        noun: str, what the values are called in the message.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{noun} must be a list of str, received {values!r:.60}.")
    return values


def is_unicode(text: Any) -> bool:
    """Whether a value is a str that can be saved: without half of a surrogate pair."""
    return isinstance(text, str) and not SURROGATE.search(text)
