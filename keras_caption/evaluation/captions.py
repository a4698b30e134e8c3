"""Checks of captions and references before they are scored, and notes on scores."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.base.errors import InputError
from keras_caption.text import split_words

# Characters of languages written without spaces between words, and the greatest mean
# length of runs of such characters in text that was split into words.
UNSPACED = {
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+": 3,
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+": 7,  # Thai, Lao, Burmese, Khmer
}
MOST_IN_BLEU = 4  # words of an n-gram


def check_captions(
    captions: Mapping[Any, str], references: Mapping[Any, Sequence[str]]
) -> None:
    """Raises `InputError` unless every image has a caption and references.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.
    """
    for name, by_image in {"Captions": captions, "References": references}.items():
        if not isinstance(by_image, Mapping):
            raise InputError(
                f"{name} must be a dict from image id, received {by_image!r:.60}."
            )
    if not captions:
        raise InputError("There are no captions to score.")
    for image_id, caption in captions.items():
        if not isinstance(caption, str):
            raise InputError(
                f"The caption of image {image_id!r} must be a string, received "
                f"{caption!r:.60}."
            )
        texts = references.get(image_id)
        if not is_list_of_strings(texts):
            raise InputError(
                f"The references of image {image_id!r} must be a list of at least one "
                f"string, received {texts!r:.60}."
            )


def check_words(
    expected: Mapping[Any, Sequence[str]], references: Mapping[Any, Sequence[str]]
) -> None:
    """Raises `InputError` unless every image has a reference with a word.

    Args:
        expected: dict from image id to a list of str, references split into words.
        references: dict from image id to a list of str, the same as people wrote them.
    """
    for image_id, texts in expected.items():
        if not any(texts):
            raise InputError(
                f"The references of image {image_id!r} must have at least one word, "
                f"received {references[image_id]!r:.60}."
            )


def is_list_of_strings(texts: Any) -> bool:
    """Returns whether texts are a sequence of at least one str."""
    return (
        isinstance(texts, Sequence)
        and not isinstance(texts, str)
        and len(texts) > 0
        and all(isinstance(text, str) for text in texts)
    )


def normalize(text: str, characters: bool = False) -> str:
    """Normalizes a text to words, or to characters, separated by spaces.

    Args:
        text: str.
        characters: bool, whether to split the words into characters.
    """
    words = split_words(text)
    return " ".join("".join(words) if characters else words)


def lacks_spaces(texts: Sequence[str]) -> bool:
    """Returns whether texts lack the spaces that separate words.

    Chinese, Japanese, Thai, Lao, Burmese and Khmer are written so.

    Args:
        texts: Sequence of str.
    """
    text = " ".join(texts)
    length = sum(map(len, text.split()))
    for pattern, longest in UNSPACED.items():
        runs = re.findall(pattern, text)
        total = sum(map(len, runs))
        if 2 * total > length and total > longest * len(runs):
            return True
    return False


def notes_on_captions(
    captions: Mapping[Any, str], references: Mapping[Any, Sequence[str]]
) -> dict[str, str]:
    """Explains which scores by words mean nothing for these captions.

    Args:
        captions: dict from image id to str, words separated by spaces.
        references: dict from image id to a list of such str.

    Returns:
        dict from the name of a metric, or `"note"` for all of them, to a sentence.
    """
    notes = notes_on_references(references)
    longest = max(len(text.split()) for text in captions.values())
    for n in range(max(longest, 1) + 1, MOST_IN_BLEU + 1):
        if "note" not in notes:  # which says why
            notes[f"BLEU-{n}"] = f"means nothing, for no caption has {n} words."
    return notes


def notes_on_references(references: Mapping[Any, Sequence[str]]) -> dict[str, str]:
    """Explains which scores by words mean nothing for these references.

    Args:
        references: dict from image id to a list of str.

    Returns:
        dict, see `notes_on_captions`.
    """
    notes = {}
    if lacks_spaces([text for texts in references.values() for text in texts]):
        notes["note"] = (
            "captions without spaces are one word each: their scores by words mean "
            "nothing. `keras-caption score --characters` scores them by characters; a "
            "captioner is trained on characters by --config.data.tokenizer=characters."
        )
    if len({frozenset(texts) for texts in references.values()}) == 1:
        same = "there is one image" if len(references) == 1 else "all have the same"
        notes["CIDEr-D"] = (
            "means nothing: it is 0 whatever the captions, as it counts words by how "
            f"few images have them in their references, and {same}."
        )
    return notes
