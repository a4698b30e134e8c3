"""Checks of captions and references before they are scored."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.errors import InputError

# All control characters but tabs, Unicode's line and paragraph separators, and
# surrogates, which UTF-8 cannot encode.
NOT_ON_A_LINE = re.compile("[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def check_captions(
    captions: Mapping[Any, str], references: Mapping[Any, Sequence[str]]
) -> None:
    """Raises `InputError` unless every image has a caption and references.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.
    """
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


def is_list_of_strings(texts: Any) -> bool:
    """Whether texts are a sequence of at least one str."""
    return (
        isinstance(texts, Sequence)
        and not isinstance(texts, str)
        and len(texts) > 0
        and all(isinstance(text, str) for text in texts)
    )


def one_line(text: str) -> str:
    """Replaces characters that may end a line by spaces.

    The metrics in Java read one caption per line, and the PTB tokenizer splits lines
    at the same characters as `str.splitlines`.
    """
    return NOT_ON_A_LINE.sub(" ", text)
