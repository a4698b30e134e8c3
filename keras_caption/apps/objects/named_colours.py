"""Colours that captions give to objects."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from keras_caption.apps.objects.object_words import PATTERN, category_of
from keras_caption.base.arguments import TextByImage, TextsByImage, check

# Words for a colour, and the colour that they are counted as.
WORDS = {
    **{colour: colour for colour in ("black", "white", "red", "orange", "yellow")},
    **{colour: colour for colour in ("green", "blue", "purple", "pink", "brown")},
    **{"grey": "grey", "gray": "grey", "tan": "brown"},
}
COLOUR = "|".join(WORDS)
# Before a noun, "brown and white" or "brown"; a word may stand between, as in "brown
# little dog".
BEFORE = re.compile(rf"\b(?:({COLOUR}) and )?({COLOUR}) (?:(?!and )\w+ )?$")


def named_colours(caption: str) -> set[tuple[str, str]]:
    """Finds the colours of objects in a caption, as pairs of category and colour.

    Args:
        caption: str.
    """
    text, pairs = " ".join(caption.lower().split()), set()
    for noun in PATTERN.finditer(text):
        if colours := BEFORE.search(text[: noun.start()]):
            category = category_of(noun.group())
            pairs |= {(category, WORDS[x]) for x in colours.groups() if x}
    return pairs


def colour_agreement(
    captions: Mapping[Any, str], references: Mapping[Any, Sequence[str]]
) -> tuple[float, float, int]:
    """Computes how often captions and references agree on the colours of objects.

    Args:
        captions: dict from image id to str.
        references: dict from image id to a list of str, at least for these images.

    Returns:
        A tuple: the share of pairs of category and colour named by captions that a
        reference names too; the same share among pairs whose category has a colour in a
        reference, as people mention few of the colours they see; and the number of
        pairs.

    Raises:
        InputError: If captions or references are of another kind.
    """
    check(TextByImage, captions=captions)
    check(TextsByImage, references=references)
    right, judged, count = 0, 0, 0
    for image_id, caption in captions.items():
        referenced = set().union(*map(named_colours, references[image_id]))
        named = named_colours(caption)
        coloured = {category for category, _ in referenced}
        count += len(named)
        right += len(named & referenced)
        judged += sum(category in coloured for category, _ in named)
    return right / max(count, 1), right / max(judged, 1), count
