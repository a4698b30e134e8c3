import html
from collections.abc import Mapping, Sequence
from typing import Any

# What admits a word, by the kind of its link.
ADMITTED_BY = {
    "object": "detected",
    "name": "class of what is in the box",
    "colour": "colour of the pixels in the box",
    "relation": "relation of boxes",
    "place": "place of the photo",
    "thing": "class of the whole photo",
}


def linked_words(
    text: str, links: Sequence[Mapping[str, Any]], boxes: Sequence[Sequence[float]] = ()
) -> str:
    """A caption as HTML, in which words say what admits them.

    Args:
        text: str.
        links: Sequence of dict, see `keras_caption.apps.objects.description.describe`.
        boxes: Sequence of boxes that are drawn. A word has the numbers of its own in
            the attribute `data-boxes`.
    """
    parts, end = [], 0
    for link in links:
        start, word = link["start"], link["word"]
        own = [str(i) for i, box in enumerate(boxes) if list(box) in link["boxes"]]
        title = f"{ADMITTED_BY[link['kind']]}, {link['probability']:.0%}"
        parts += [
            html.escape(text[end:start]),
            f'<u tabindex="0" title="{title}" data-boxes="{" ".join(own)}">'
            f"{html.escape(word)}</u>",
        ]
        end = start + len(word)
    return "".join([*parts, html.escape(text[end:])])
