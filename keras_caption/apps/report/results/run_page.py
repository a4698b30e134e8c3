"""The page of a run: one file, which a browser shows without a network or a server."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from keras_caption.apps.report.results.embedded_images import embedded_image
from keras_caption.apps.report.results.examples import Attention, Example
from keras_caption.apps.report.results.templates import templates_of

FRAMED = 4  # areas that are framed for a word, at most
LEAST = 0.05  # share of attention of an area that is framed
SIDE = 320  # pixels of the longer side of an image, at most


def render(**content: Any) -> str:
    """Renders the page.

    Args:
        **content: What `templates/run_page.html` shows.

    Returns:
        HTML.
    """
    environment = templates_of("keras_caption.apps.report.results")
    environment.filters["picture"] = picture
    environment.filters["percent"] = percent
    return environment.get_template("run_page.html").render(content)


def attention_data(examples: Mapping[Any, Example]) -> Markup:
    """What the words of all lines attend to, as JSON for a script of the page.

    Args:
        examples: dict from key to `Example`.

    Returns:
        A list with, for each line in its turn, the framed areas of its words in
        percent, and their names; of a source, all of its words, and their shares; or
        null for lines without attention.
    """
    lines = [line for example in examples.values() for line in example.lines]
    data = [line.attention and _shown(line.attention) for line in lines]
    # Within <script>, a name must not end it.
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _shown(attention: Attention):
    areas = attention.areas
    return _shaded(attention) if areas is None else _framed(attention, areas)


def _shaded(attention: Attention):
    """Words of a source, and their shares for each word of the line."""
    percents = np.round(100 * attention.weights).astype(int)
    words = [
        [[i, share] for i, share in enumerate(row) if share]
        for row in percents.tolist()
    ]
    return {"names": attention.names, "gap": attention.gap, "words": words}


def _framed(attention: Attention, areas: Float[np.ndarray, "M 4"]):
    """Shares of the areas framed for each word, and these areas and all named ones."""
    words = []
    for weights in attention.weights:
        order = np.argsort(-weights)[:FRAMED]
        best = [item for item in order if weights[item] >= LEAST] or order[:1]
        words.append([[int(i), round(100 * float(weights[i]))] for i in best])
    used = {item for word in words for item, _ in word}
    names = attention.names or [""] * len(areas)
    used |= {item for item, name in enumerate(names) if name}
    framed = {
        int(item): [*(round(100 * float(x), 1) for x in areas[item]), names[item]]
        for item in sorted(used)
    }
    return {"areas": framed, "words": words}


def picture(pixels: np.ndarray) -> str:
    """The URL of an image that holds its content."""
    return embedded_image(pixels, SIDE, quality=80)[1]


def percent(share: float) -> str:
    """A score as papers print it, times 100."""
    return f"{100 * share:.1f}"
