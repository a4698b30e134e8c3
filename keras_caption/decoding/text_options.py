"""Options that are texts, as tokens."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32

from keras_caption.decoding.constrained_beam import progress_table
from keras_caption.errors import InputError
from keras_caption.settings.decoding import Decoding
from keras_caption.text import PAD, Tokenizer


def known_tokens(vocabulary: Tokenizer, name: str, text: str) -> list[int]:
    """Tokens of a text of the option `name`.

    Raises:
        InputError: If a model with this vocabulary never generates it.
    """
    tokens = vocabulary.to_ids(text)
    if not all(map(vocabulary.is_known, tokens)):
        raise InputError(f"`{name}`: {text!r} has words that the model does not know.")
    return tokens


def phrases_of(vocabulary: Tokenizer, name: str, texts: Sequence[str]) -> list:
    """Tokens of the words or phrases of the option `name`, each once.

    Raises:
        InputError: If one has no words, or unknown ones.
    """
    phrases = [tuple(known_tokens(vocabulary, name, text)) for text in texts]
    if () in phrases:
        raise InputError(f"`{name}`: {texts[phrases.index(())]!r} has no words.")
    return [*dict.fromkeys(phrases)]


def forbidden_tokens(
    vocabulary: Tokenizer, texts: Sequence[str]
) -> Int32[np.ndarray, "phrases longest"]:
    """The phrases of `Decoding.forbidden`, int32 `(phrases, longest)`, after PAD.

    Raises:
        InputError: As `phrases_of` raises it.
    """
    phrases = phrases_of(vocabulary, "forbidden", texts)
    tokens = np.full((len(phrases), max(map(len, phrases))), PAD, "int32")
    for row, phrase in zip(tokens, phrases, strict=True):
        row[len(row) - len(phrase) :] = phrase
    return tokens


def required_tokens(
    vocabulary: Tokenizer, options: Decoding
) -> Int32[np.ndarray, "phrases states vocabulary_size"]:
    """The phrases of `Decoding.required`, see `progress_table`.

    Raises:
        InputError: As `phrases_of` raises it, or if `max_length` is too little.
    """
    phrases = phrases_of(vocabulary, "required", options.required)
    count = sum(map(len, phrases))
    if count > options.max_length:
        raise InputError(
            f"`required`: {count} tokens do not fit into a `max_length` of "
            f"{options.max_length}."
        )
    return progress_table(phrases, len(vocabulary))


def prefix_tokens(
    vocabulary: Tokenizer, options: Decoding, count: int
) -> Int32[np.ndarray, "count max_length"]:
    """What `count` examples begin with, int32 `(count, max_length)`, then PAD.

    Raises:
        InputError: If there are not as many, or one is too long or has unknown words.
    """
    texts = options.prefix
    texts = (texts,) * count if isinstance(texts, str) else texts
    if len(texts) != count:
        raise InputError(
            f"`prefix`: there are {len(texts)} texts for {count} examples."
        )
    tokens = np.full((count, options.max_length), PAD, "int32")
    for row, text in zip(tokens, texts, strict=True):
        ids = known_tokens(vocabulary, "prefix", text)
        if len(ids) > len(row):
            raise InputError(
                f"`prefix`: {text!r:.60} has {len(ids)} tokens, more than a "
                f"`max_length` of {len(row)}."
            )
        row[: len(ids)] = ids
    return tokens
