"""Captions and references as they are before they are scored."""

import collections.abc
import re

from keras_caption.errors import InputError

# All control characters but tabs, Unicode's line and paragraph separators, and
# surrogates, which have no UTF-8.
NOT_ON_A_LINE = re.compile("[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def check_captions(captions, references):
    """Raises `InputError` unless every image has a caption and references.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, for these images at least.
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


def is_list_of_strings(texts):
    return (
        isinstance(texts, collections.abc.Sequence)
        and not isinstance(texts, str)
        and len(texts) > 0
        and all(isinstance(text, str) for text in texts)
    )


def one_line(text):
    """The text with a space for each character that may end a line.

    Java's metrics read one caption per line, and the PTB tokenizer ends lines where
    `str.splitlines` does. Text without such characters stays as it is.
    """
    return NOT_ON_A_LINE.sub(" ", text)
