"""A page of small photos with what was detected in them, and their captions."""

import base64
import html
import io
import json
import re
from typing import Any

import numpy as np

from keras_caption.commands.file_names import to_text

SIDE = 320  # pixels of the longer side of a small photo
COLOURS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080")

HEAD = """<!DOCTYPE html><meta charset="utf-8"><title>Captions</title>
<style>
body { font: 15px/1.4 sans-serif; margin: 2em; display: flex; flex-wrap: wrap }
figure { width: 320px; margin: 0 1.5em 2em 0 }
img { max-width: 320px; display: block }
small { color: #666; overflow-wrap: anywhere }
</style>
"""


def figure_of(row: dict[str, Any], pixels: np.ndarray) -> str:
    """A photo as one line of HTML, with its name as JSON in an attribute.

    Args:
        row: dict of `photo`, `caption`, `score` and `objects`.
        pixels: uint8 `(height, width, 3)`.
    """
    name = html.escape(json.dumps(row["photo"]))
    image = base64.b64encode(_small_jpeg(pixels, row["objects"])).decode()
    caption, photo = html.escape(row["caption"]), html.escape(to_text(row["photo"]))
    objects = ", ".join(o["category"] for o in row["objects"])
    return (
        f'<figure data-photo="{name}"><img alt="{caption}" '
        f'src="data:image/jpeg;base64,{image}"><figcaption>{caption}<br>'
        f"<small>{photo} ({row['score']:.2f}); {objects}</small>"
        "</figcaption></figure>"
    )


def photo_of(line: str) -> str:
    """The photo that a line of `figure_of` shows.

    Raises:
        ValueError: If the line is another.
    """
    match = re.match('<figure data-photo="([^"]*)">', line)
    if match is None:
        raise ValueError(line[:100])
    return json.loads(html.unescape(match[1]))


def _small_jpeg(pixels, objects):
    from PIL import Image, ImageDraw

    image = Image.fromarray(pixels)
    image.thumbnail((SIDE, SIDE))
    draw = ImageDraw.Draw(image)
    for i, item in enumerate(objects):
        colour = COLOURS[i % len(COLOURS)]
        x1, y1, x2, y2 = np.array(item["box"]) * (*image.size, *image.size)
        draw.rectangle((x1, y1, x2, y2), outline=colour, width=2)
        draw.text((x1 + 4, y1 + 2), item["category"], fill=colour)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()
