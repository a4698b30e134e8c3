"""A page of photos with what was detected in them, and their captions.

It is one file, which a browser shows without a network or a server. Each photo is one
line of it, so that it can be continued.
"""

import collections
import html
import importlib.resources
import json
import re
from typing import Any

import numpy as np

from keras_caption.apps.report.results.embedded_images import embedded_image
from keras_caption.apps.report.results.file_names import to_text
from keras_caption.apps.report.results.labels import places_of_labels
from keras_caption.apps.report.results.linked_words import linked_words

SIDE = 400  # pixels of the longer side of a small photo
# White is readable on all of them.
COLOURS = ("#b3123c", "#1b6e35", "#2846b0", "#9a4200", "#7a1591", "#006666")
SHOWN = 0.75  # of that side at least, where labels are laid out

TEMPLATES = importlib.resources.files("keras_caption.apps.report.results") / "templates"
# What stands before the photos.
HEAD = (TEMPLATES / "contact_sheet.html").read_text(encoding="utf-8")


def figure_of(row: dict[str, Any], pixels: np.ndarray) -> str:
    """A photo as one line of HTML, with its name as JSON in an attribute.

    Args:
        row: dict of `photo`, `caption`, `confidence`, `unsure`, `doubt` and `objects`;
            perhaps `links`, of which a pointed word shows the boxes; and, if several
            captions are wanted, `n_best`.
        pixels: uint8 `(height, width, 3)`.
    """
    name = html.escape(json.dumps(row["photo"]))
    caption, photo = html.escape(row["caption"]), html.escape(to_text(row["photo"]))
    size, image = embedded_image(pixels, SIDE, quality=85)
    counts = collections.Counter(item["category"] for item in row["objects"])
    objects = [f"{x} ({n})" if n > 1 else x for x, n in counts.items()]
    sure = f"{row['confidence']:.0%}" if caption else "nothing detected"
    doubt = html.escape(row["doubt"] and f": {row['doubt']}")
    mark = f" <mark>unsure{doubt}</mark>" if caption and row["unsure"] else ""
    others = [html.escape(x["caption"]) for x in row.get("n_best", [])[1:]]
    boxes = [item["box"] for item in row["objects"]]
    said = linked_words(row["caption"], row.get("links", []), boxes)
    words = "<br>".join([said + mark, *others])
    facts = [sure, html.escape(", ".join(objects)), photo]
    return (
        f'<figure data-photo="{name}" data-confidence="{row["confidence"]}"><div>'
        f'<img alt="{caption}" src="{image}">'
        f"{_labelled_boxes(row['objects'], size)}</div><figcaption>{words}"
        f"<small>{' · '.join(filter(None, facts))}</small></figcaption></figure>"
    )


def photo_of(line: str) -> str:
    """The photo that a line of `figure_of` shows.

    Raises:
        ValueError: If the line is another.
    """
    match = re.match('<figure data-photo="([^"]*)"', line)
    if match is None:
        raise ValueError(line[:100])
    return json.loads(html.unescape(match[1]))


def _labelled_boxes(objects, size):
    """Boxes in the colours of their categories, then labels."""
    colours = {}
    for item in objects:
        colour = COLOURS[len(colours) % len(COLOURS)]
        colours.setdefault(item["category"], colour)
    boxes = [
        f'<i style="{_place(item["box"])};color:{colours[item["category"]]}"></i>'
        for item in objects
    ]
    width, height = (SHOWN * side for side in size)
    places = places_of_labels(objects, width, height)
    labels = [
        f'<b style="left:{100 * place[0] / width:.1f}%;'
        f"top:{100 * place[1] / height:.1f}%;"
        f'background:{colours[item["category"]]}">{html.escape(item["category"])}</b>'
        for item, place in zip(objects, places, strict=True)
        if place  # otherwise the category stands below the photo alone
    ]
    return "".join(boxes + labels)


def _place(box):
    x1, y1, x2, y2 = (100 * x for x in box)
    return f"left:{x1:.1f}%;top:{y1:.1f}%;width:{x2 - x1:.1f}%;height:{y2 - y1:.1f}%"
