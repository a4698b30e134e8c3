"""Options that are texts, as tokens."""

import collections
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int32

from keras_caption.base.errors import InputError
from keras_caption.decoding.constrained_beam import Required, required_phrases
from keras_caption.settings.decoding import Decoding
from keras_caption.text import PAD, Tokenizer

Phrase = tuple[int, ...]
# Of forbidden phrases, each as long as the longest: a search compares all at each step.
MAX_FORBIDDEN = 10**7


def can_come(vocabulary: Tokenizer, tokens: Sequence[int]) -> bool:
    """Whether a model with this vocabulary may generate all of some tokens."""
    return all(vocabulary.is_known(x) or vocabulary.is_space(x) for x in tokens)


def known_tokens(vocabulary: Tokenizer, name: str, text: str) -> Phrase:
    """Tokens of a text of the option `name`.

    Raises:
        InputError: If a model with this vocabulary never generates it.
    """
    tokens = vocabulary.to_ids(text)
    if not can_come(vocabulary, tokens):
        raise InputError(f"`{name}`: {text!r} has words that the model does not know.")
    return tuple(tokens)


def check_texts(vocabulary: Tokenizer, options: Decoding) -> None:
    """Raises `InputError` if a text of the options is wrong, or they contradict."""
    texts = options.prefix
    prefix_tokens(vocabulary, options, 1 if isinstance(texts, str) else len(texts))
    forbidden_phrases(vocabulary, options.forbidden)
    if options.required:
        required_tokens(vocabulary, options)


def phrases_of(vocabulary: Tokenizer, name: str, texts: Sequence[str]) -> list[Phrase]:
    """Tokens of the words or phrases of the option `name`, each once.

    Raises:
        InputError: If one has no words, or unknown ones.
    """
    phrases = [known_tokens(vocabulary, name, text) for text in texts]
    for text, phrase in zip(texts, phrases, strict=True):
        if not any(map(vocabulary.is_known, phrase)):
            raise InputError(f"`{name}`: {text!r} has no words.")
    return [*dict.fromkeys(phrases)]


def forbidden_phrases(vocabulary: Tokenizer, texts: Sequence[str]) -> list[Phrase]:
    """The phrases of `Decoding.forbidden` that the model could generate.

    Raises:
        InputError: If one has no words.
    """
    tokens = [vocabulary.to_ids(text) for text in texts]
    known = [
        text
        for text, ids in zip(texts, tokens, strict=True)
        if can_come(vocabulary, ids)
    ]
    return phrases_of(vocabulary, "forbidden", known)


def forbidden_tokens(
    vocabulary: Tokenizer, texts: Sequence[str]
) -> Int32[np.ndarray, "phrases longest"]:
    """The phrases of `Decoding.forbidden`, int32 `(phrases, longest)`, after PAD.

    Raises:
        InputError: As `forbidden_phrases` raises it, or if they take too much memory.
    """
    phrases = forbidden_phrases(vocabulary, texts)
    longest = max(map(len, phrases), default=1)
    if len(phrases) * longest > MAX_FORBIDDEN:
        raise InputError(
            f"`forbidden`: {len(phrases):,} phrases of up to {longest:,} tokens have "
            f"more than {MAX_FORBIDDEN:,} in all."
        )
    tokens = np.full((len(phrases), longest), PAD, "int32")
    for row, phrase in zip(tokens, phrases, strict=True):
        row[len(row) - len(phrase) :] = phrase
    return tokens


def required_tokens(vocabulary: Tokenizer, options: Decoding) -> Required:
    """The phrases of `Decoding.required`, see `required_phrases`.

    Raises:
        InputError: As `phrases_of` raises it, or if no text of `max_length` tokens that
            begins with the `prefix` can have them, as one is forbidden.
    """
    phrases = phrases_of(vocabulary, "required", options.required)
    check_number(phrases, options.max_length)
    forbidden = {*forbidden_phrases(vocabulary, options.forbidden)}
    given = options.prefix
    for text in [given] if isinstance(given, str) else {*given}:
        prefix = known_tokens(vocabulary, "prefix", text)
        missing = [phrase for phrase in phrases if not has(prefix, phrase)]
        for phrase in missing:
            if not forbidden.isdisjoint(parts_of(phrase)):
                raise InputError(
                    f"`required`: {vocabulary.to_text([*phrase])!r} is `forbidden`."
                )
        least = least_length(prefix, missing)
        if least > options.max_length:
            beside = f" beside {len(prefix)} of `prefix`" if prefix else ""
            raise InputError(
                f"`required`: {least - len(prefix)} tokens{beside} do not fit into a "
                f"`max_length` of {options.max_length}."
            )
    return required_phrases(phrases)


def check_number(phrases: Sequence[Phrase], max_length: int) -> None:
    """Raises `InputError` if phrases of one length need more tokens than there are.

    So few are left that all pairs of them can be compared.
    """
    for size, count in collections.Counter(map(len, phrases)).items():
        if (least := size - 1 + count) > max_length:
            raise InputError(
                f"`required`: {least:,} tokens do not fit into a `max_length` of "
                f"{max_length}."
            )


def parts_of(phrase: Phrase) -> Iterator[Phrase]:
    """Yields all tokens of a phrase that stand in a row."""
    for start in range(len(phrase)):
        for end in range(start + 1, len(phrase) + 1):
            yield phrase[start:end]


def least_length(prefix: Phrase, phrases: Sequence[Phrase]) -> int:
    """A lower bound for the tokens of texts with all phrases behind a prefix.

    The beginning of a phrase may be the end of one other, or of the prefix.
    """
    outer = [x for x in phrases if not any(has(y, x) for y in phrases if y != x)]
    shared = [
        max(overlap(before, phrase) for before in (prefix, *outer) if before != phrase)
        for phrase in outer
    ]
    return len(prefix) + sum(map(len, outer)) - sum(shared)


def has(phrase: Phrase, part: Phrase) -> bool:
    """Whether a phrase has the tokens of another in a row."""
    size = len(part)
    return any(phrase[i : i + size] == part for i in range(len(phrase) - size + 1))


def overlap(before: Phrase, phrase: Phrase) -> int:
    """The number of tokens that end one phrase and begin another."""
    most = min(len(before), len(phrase))
    return next(
        n for n in range(most, -1, -1) if before[len(before) - n :] == phrase[:n]
    )


def prefix_tokens(
    vocabulary: Tokenizer, options: Decoding, count: int
) -> Int32[np.ndarray, "count max_length"]:
    """What `count` examples begin with, int32 `(count, max_length)`, then PAD.

    Raises:
        InputError: If there are not as many, or one is too long or has unknown words.
    """
    texts = options.prefix
    texts = (texts,) * count if isinstance(texts, str) else texts
    check_prefixes(options, count)
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


def check_prefixes(options: Decoding, count: int, noun: str = "example") -> None:
    """Raises `InputError` unless a list of `prefix` has a text for each example."""
    texts = options.prefix
    if not isinstance(texts, str) and len(texts) != count:
        raise InputError(f"`prefix`: there are {len(texts)} texts for {count} {noun}s.")
