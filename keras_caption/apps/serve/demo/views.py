"""Predictions as HTML: the text, and the items that each word attends to.

A word is a radio button. The attention weights of word 0, 1, ... are the properties
`--w0`, `--w1`, ... of the items; the style selects the property of the chosen or
hovered word. The page therefore needs no script, and works with mouse, finger and
keyboard.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from keras_caption.apps.report.results.embedded_images import embedded_image
from keras_caption.apps.report.results.labels import places_of_labels
from keras_caption.apps.report.results.linked_words import linked_words
from keras_caption.apps.report.results.templates import templates_of
from keras_caption.apps.serve import Prediction
from keras_caption.text.tokenizer import SPECIAL_TOKENS

SIDE = 960  # greatest side of a shown image, in pixels
SHOWN = 460  # width of a photo on a page of two columns, where labels are laid out
FRAME = 72  # least width of a clip's frame, in pixels
NAMED = 3  # items that are listed for a word
# White text has a contrast of at least 4.5 on each.
COLOURS = ("#0072b2", "#b5478d", "#00785a", "#a84700", "#5b4fc4", "#8a6d00")
TEMPLATES = templates_of("keras_caption.apps.serve.demo")
STYLE = TEMPLATES.get_template("view.css").render()
_numbers = itertools.count()  # of views: radio buttons of a view share a name


def error_view(problem: str, title: str = "") -> str:
    """An error as HTML."""
    return render("error", problem=problem, title=title)


def limits_view(limits: Mapping[str, Sequence[str]]) -> str:
    """What models cannot do, as HTML.

    Args:
        limits: dict from the name of a model to its limits, sentences.
    """
    return render("limits", limits=limits)


def photo_view(
    prediction: Prediction, pixels: UInt8[np.ndarray, "height width 3"], title: str = ""
) -> str:
    """A caption or an answer, and the photo with its regions or cells, as HTML.

    Args:
        prediction: `Prediction` with attention.
        pixels: uint8 `(height, width, 3)`, the photo.
        title: str, name of the model.
    """
    image, boxes = image_of(pixels), prediction.boxes
    if boxes is None or not prediction.text:
        return view(prediction, title, image=image)
    named = len(prediction.items) == len(boxes)
    labels = labels_of(prediction) if named else [""] * len(boxes)
    items = framed(boxes, labels, SHOWN * pixels.shape[0] / pixels.shape[1])
    if named:
        numbers = {x: i for i, x in enumerate(dict.fromkeys(prediction.items))}
        for item, name in zip(items, prediction.items, strict=True):
            item["colour"] = COLOURS[numbers[name] % len(COLOURS)]
    return view(prediction, title, items, image)


def film_view(
    prediction: Prediction, strip: UInt8[np.ndarray, "height width 3"], title: str = ""
) -> str:
    """A clip's caption and its frames side by side, as HTML.

    Args:
        prediction: `Prediction` with attention over the frames.
        strip: uint8 `(height, width, 3)`, see `keras_caption.features.film_strip`.
        title: str, name of the model.
    """
    count = relative(prediction).shape[1]
    frames = np.array([(i / count, 0, (i + 1) / count, 1) for i in range(count)])
    items = framed(frames, [""] * count, SHOWN)
    return view(prediction, title, items, image_of(strip), count * FRAME)


def text_view(prediction: Prediction, title: str = "") -> str:
    """A translation and the words of the sentence, as HTML."""
    names = [x if is_word(x) else "(end)" for x in prediction.items]
    return view(prediction, title, [{"label": name} for name in names])


# === Parts of a view ===


def view(
    prediction: Prediction,
    title: str,
    items: Sequence[dict[str, Any]] = (),
    image: str = "",
    width: int = 0,
) -> str:
    """The text, its words, the input with its items, and the best texts, as HTML.

    Args:
        prediction: `Prediction` with attention.
        title: str, name of the model.
        items: What the words attend to: dicts of a `label` and, over an image, of the
            values of `framed`.
        image: URL of the image that the items are of; of a sentence, empty.
        width: int, least width of the image in pixels, which can be scrolled.
    """
    if items:
        for item, weights in zip(items, relative(prediction).T, strict=False):
            item["weights"] = weights
    return render(
        "view",
        prediction=prediction,
        title=title,
        group=f"kc{next(_numbers)}",
        text=linked_words(prediction.text, prediction.links),
        words=[(i, x) for i, x in enumerate(prediction.words) if is_word(x)],
        items=items,
        image=image,
        width=width,
        most=most_attended(prediction),
    )


def image_of(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """The URL of an image, of `SIDE` pixels at most unless it is a strip."""
    height, width, _ = pixels.shape
    is_strip = height <= SIDE and width / height >= 4
    return embedded_image(pixels, None if is_strip else SIDE, quality=88)[1]


def is_word(word: str) -> bool:
    return word not in SPECIAL_TOKENS and bool(word.strip())


def framed(
    boxes: Float[np.ndarray, "M 4"], labels: Sequence[str], height: float
) -> list[dict[str, Any]]:
    """Boxes over an image, with labels that do not cover each other.

    Args:
        boxes: float `(M, 4)`, x1, y1, x2, y2.
        labels: List of str. A box without a label is shown for a chosen word only.
        height: float, pixels of an image whose width is `SHOWN`.

    Returns:
        List of dict of the `label`, its `place` in percent of the box, the `area` of
        the box in percent of the image, its `kind` for the style, and a `colour`.
    """
    boxes, size = np.clip(np.asarray(boxes, float), 0, 1), (SHOWN, height)
    objects = [
        {"category": label, "box": box}
        for box, label in zip(boxes, labels, strict=True)
        if label
    ]
    places = iter(places_of_labels(objects, *size))
    items = []
    for box, label in zip(boxes, labels, strict=True):
        corner, sides = box[:2], box[2:] - box[:2]
        kind, place = "quiet", corner
        if label:
            free = next(places)
            kind = "" if free else "hidden"
            place = np.divide(free[:2], size) if free else corner
        items.append(
            {
                "label": label,
                "place": (100 * (place - corner) / np.maximum(sides, 1e-3)).tolist(),
                "area": (100 * np.concatenate([corner, sides])).tolist(),
                "kind": kind,
                "colour": COLOURS[0],
            }
        )
    return items


def relative(prediction: Prediction) -> Float[np.ndarray, "words M"]:
    """Attention weights of each word, divided by the greatest of them."""
    weights = prediction.attention
    assert weights is not None  # it was asked for
    return weights / np.maximum(weights.max(axis=1, keepdims=True), 1e-9)


def labels_of(prediction: Prediction) -> list[str]:
    """Labels of boxes: the category and the score of the object."""
    scores = prediction.inputs.get("scores")
    return [
        f"{name} {scores[i]:.0%}" if name and scores is not None else name
        for i, name in enumerate(prediction.items)
    ]


def most_attended(prediction: Prediction) -> list[list[tuple[float, str]]]:
    """For each word, the shares and the names of the items with most attention."""
    if prediction.attention is None or not prediction.items:
        return []
    pairs = (zip(row, prediction.items, strict=False) for row in prediction.attention)
    return [
        sorted((x for x in row if is_word(x[1])), reverse=True)[:NAMED] for row in pairs
    ]


def render(name: str, **content: Any) -> str:
    """Renders a template of the page."""
    return TEMPLATES.get_template(f"{name}.html").render(content)
