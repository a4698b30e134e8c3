"""Predictions as HTML: the text, and the items that each word attends to.

A word is a radio button. The attention weights of word 0, 1, ... are the properties
`--w0`, `--w1`, ... of the items; the style selects the property of the chosen or
hovered word. The page therefore needs no script, and works with mouse, finger and
keyboard.
"""

import html
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, UInt8

from keras_caption.apps.report.results.embedded_images import embedded_image
from keras_caption.apps.report.results.linked_words import linked_words
from keras_caption.apps.serve import Prediction
from keras_caption.text.tokenizer import SPECIAL_TOKENS

SIDE = 960  # greatest side of a shown image, in pixels
FRAME = 72  # least width of a clip's frame, in pixels
NAMED = 3  # items that are listed for a word
# White text has a contrast of at least 4.5 on each.
COLOURS = ("#0072b2", "#b5478d", "#00785a", "#a84700", "#5b4fc4", "#8a6d00")
# Sizes of a label, as shares of the image's width on a page of two columns.
LABEL_HEIGHT, LETTER_WIDTH = 0.045, 0.016
_numbers = itertools.count()  # of views: radio buttons of a view share a name

STYLE = """
.kc, .kc-intro {--subdued: color-mix(in srgb, var(--body-text-color) 70%, transparent)}
.kc {--w: 1; min-width: 0; color: var(--body-text-color); font-size: 1rem;
  line-height: 1.5}
.kc h3 {margin: 0 0 .5rem; font-size: .875rem; font-weight: 600;
  color: var(--subdued); overflow-wrap: anywhere}
.kc .said {margin: 0 0 .5rem; font-size: 1.375rem; line-height: 1.35; font-weight: 600;
  overflow-wrap: anywhere}
.kc u {text-decoration: underline dotted; text-underline-offset: .2em; cursor: help}
.kc .none {color: var(--subdued)}
.kc mark {background: #ffd54a; color: #3b2f00; border-radius: 4px; padding: 0 .375rem;
  font-size: .875rem; font-weight: 600}
.kc-limits {margin: .5rem 0; padding-left: 1.25rem; color: var(--subdued);
  font-size: .875rem}
.kc .note {margin: .25rem 0; color: var(--subdued); font-size: .875rem}
.kc fieldset {border: 0; margin: 0 0 .5rem; padding: 0; display: flex; flex-wrap: wrap;
  gap: .25rem; min-width: 0}
.kc legend {padding: 0 0 .25rem; color: var(--subdued);
  font-size: .875rem}
.kc label {position: relative; cursor: pointer; padding: .25rem .625rem;
  border: 1px solid var(--border-color-primary); border-radius: 999px;
  background: var(--background-fill-primary)}
.kc label input {position: absolute; opacity: 0; inset: 0; width: 100%; height: 100%;
  margin: 0; cursor: pointer}
.kc label:hover {border-color: var(--color-accent)}
.kc label:has(:checked) {background: var(--button-primary-background-fill);
  color: var(--button-primary-text-color); border-color: transparent}
.kc label:has(:focus-visible) {outline: 3px solid var(--color-accent);
  outline-offset: 2px}
.kc .stage {overflow: auto hidden; border-radius: 8px; line-height: 0;
  background: #0003}
.kc .stage .items {position: relative}
.kc .stage img {width: 100%; height: auto; margin: 0; display: block}
.kc .box {position: absolute; box-sizing: border-box; border: 2px solid var(--c);
  border-radius: 3px; opacity: clamp(0, var(--w) * 1.5, 1);
  background: color-mix(in srgb, var(--c) calc(var(--fill) * var(--w)), transparent);
  --fill: 0%}
.kc .quiet {opacity: 0; --fill: 40%}
.kc .box span {position: absolute; left: -2px; top: -2px; padding: 0 .3rem; z-index: 1;
  font-size: .75rem; line-height: 1.25rem; font-weight: 600; white-space: nowrap;
  color: #fff; background: var(--c); border-radius: 3px}
.kc .box .end {left: auto; right: -2px}
.kc .box .low {top: auto; bottom: -2px}
.kc .hidden span {opacity: 0}
.kc .box:hover span {opacity: 1}
.kc .box:hover {z-index: 2; opacity: 1}
@media (max-width: 640px) {
  .kc .box span {font-size: .625rem; line-height: 1rem; padding: 0 .2rem}
}
.kc .tokens {display: flex; flex-wrap: wrap; gap: .25rem; margin: 0}
.kc .token {--w: 0; padding: .125rem .375rem; border-radius: 6px;
  border: 1px solid var(--border-color-primary)}
.kc .shares {margin: .5rem 0 0; min-height: 1.5em; font-size: .875rem}
.kc .shares span {display: none}
.kc table {width: 100%; color: inherit; margin-top: .75rem; border-collapse: collapse;
  font-size: .9375rem}
.kc table, .kc tr {border: 0 !important}
.kc th {text-align: left; font-weight: 600; color: var(--subdued);
  font-size: .8125rem}
.kc th, .kc td {padding: .3rem .5rem .3rem 0; vertical-align: top;
  border: 0 !important; overflow-wrap: break-word;
  border-bottom: 1px solid var(--border-color-primary) !important}
.kc .number {text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums}
.kc.error {border-left: 4px solid #d6323d; padding: .5rem .75rem; border-radius: 4px;
  background: color-mix(in srgb, #d6323d 14%, transparent)}
"""


def error_view(problem: str, title: str = "") -> str:
    """An error as HTML."""
    text = heading(title) + html.escape(problem)
    return f'<div class="kc error" role="alert">{text}</div>'


def photo_view(
    prediction: Prediction, pixels: UInt8[np.ndarray, "height width 3"], title: str = ""
) -> str:
    """A caption or an answer, and the photo with its regions or cells, as HTML.

    Args:
        prediction: `Prediction` with attention.
        pixels: uint8 `(height, width, 3)`, the photo.
        title: str, name of the model.
    """
    boxes = prediction.boxes
    if boxes is None or not prediction.text:
        return view(prediction, stage(pixels), title)
    weights = relative(prediction)
    named = len(prediction.items) == len(boxes)
    labels = labels_of(prediction) if named else [""] * len(boxes)
    colours = {
        name: COLOURS[i % len(COLOURS)]
        for i, name in enumerate(dict.fromkeys(prediction.items))
    }
    places = label_places(boxes, labels, pixels.shape[1] / pixels.shape[0])
    items = []
    for i, (box, label, place) in enumerate(zip(boxes, labels, places, strict=True)):
        colour = colours[prediction.items[i]] if named else COLOURS[0]
        items.append(framed(box, label, place, colour, weights[:, i]))
    return view(prediction, stage(pixels, items), title)


def film_view(
    prediction: Prediction, strip: UInt8[np.ndarray, "height width 3"], title: str = ""
) -> str:
    """A clip's caption and its frames side by side, as HTML.

    Args:
        prediction: `Prediction` with attention over the frames.
        strip: uint8 `(height, width, 3)`, see `keras_caption.features.film_strip`.
        title: str, name of the model.
    """
    weights = relative(prediction)
    count = weights.shape[1]
    items = [
        framed((i / count, 0, (i + 1) / count, 1), "", "", COLOURS[0], weights[:, i])
        for i in range(count)
    ]
    return view(prediction, stage(strip, items, count * FRAME), title)


def text_view(prediction: Prediction, title: str = "") -> str:
    """A translation and the words of the sentence, as HTML."""
    weights = relative(prediction)
    tokens = [
        f'<span class="token" style="{properties(weights[:, i])}; background: '
        "color-mix(in srgb, var(--color-accent) calc(var(--w) * 60%), transparent)"
        f'">{html.escape(name if is_word(name) else "(end)")}</span>'
        for i, name in enumerate(prediction.items)
    ]
    return view(prediction, f'<p class="tokens items">{"".join(tokens)}</p>', title)


def limits_view(limits: Mapping[str, Sequence[str]]) -> str:
    """What models cannot do, as HTML.

    Args:
        limits: dict from the name of a model to its limits, sentences.
    """
    lines = [
        f"<li><b>{html.escape(name)}</b>: {html.escape(' '.join(sentences))}</li>"
        for name, sentences in limits.items()
        if sentences
    ]
    return f'<ul class="kc-limits">{"".join(lines)}</ul>' if lines else ""


# === Parts of a view ===


def view(prediction: Prediction, shown: str, title: str) -> str:
    """The text, its words, the input in `shown`, and the best texts, as HTML."""
    group = f"kc{next(_numbers)}"
    parts = [heading(title), said(prediction), words(prediction, group), shown]
    parts += [shares(prediction), best(prediction), index_style(prediction)]
    return f'<article class="kc" id="{group}">{"".join(parts)}</article>'


def heading(title: str) -> str:
    return f"<h3>{html.escape(title)}</h3>" if title else ""


def said(prediction: Prediction) -> str:
    """The text and its confidence."""
    if not prediction.text:
        nothing = "The model says nothing."
        if prediction.tokens is None:  # without objects, nothing was generated
            nothing = "Nothing is detected that the model knows."
        return f'<p class="said none">{nothing}</p>'
    text = linked_words(prediction.text, prediction.links)
    parts = [f'<p class="said">{text}</p>']
    if prediction.confidence is not None:
        doubt = html.escape(f": {prediction.doubt}" if prediction.doubt else "")
        unsure = f" <mark>unsure{doubt}</mark>" if prediction.unsure else ""
        parts.append(
            f'<p class="note">Confidence {prediction.confidence:.0%}{unsure}</p>'
        )
    return "".join(parts)


def words(prediction: Prediction, group: str) -> str:
    """The words as radio buttons."""
    choices = [(i, word) for i, word in enumerate(prediction.words) if is_word(word)]
    if not prediction.text or not choices:
        return ""
    labels = [
        f'<label class="l{i}"><input type="radio" name="{group}" class="w w{i}">'
        f"{html.escape(word)}</label>"
        for i, word in choices
    ]
    everything = f'<label><input type="radio" name="{group}" checked>everything</label>'
    legend = "<legend>What each word attends to: hover over one, or choose it</legend>"
    return f"<fieldset>{legend}{''.join(labels)}{everything}</fieldset>"


def is_word(word: str) -> bool:
    return word not in SPECIAL_TOKENS and bool(word.strip())


def stage(
    pixels: UInt8[np.ndarray, "height width 3"],
    items: Sequence[str] = (),
    width: int = 0,
) -> str:
    """An image with `items` over it. An image of a least `width` can be scrolled."""
    height, full_width, _ = pixels.shape
    is_strip = height <= SIDE and full_width / height >= 4  # not reduced to `SIDE`
    _, source = embedded_image(pixels, None if is_strip else SIDE, quality=88)
    image = f'<img src="{source}" alt="The image that the model reads">'
    drawn = (
        f'<div class="items" style="min-width:{width}px">{image}{"".join(items)}</div>'
    )
    return f'<div class="stage" tabindex="{0 if width else -1}">{drawn}</div>'


def framed(box, label, place, colour, weights) -> str:
    """A box over the image. A box without a label is shown for a chosen word only."""
    x1, y1, x2, y2 = (100 * float(np.clip(x, 0, 1)) for x in box)
    name = "box" if label else "box quiet"
    tag = ""
    if label:
        name += " hidden" if place is None else ""
        tag = f'<span class="{place or ""}">{html.escape(label)}</span>'
    return (
        f'<div class="{name}" style="left:{x1:.2f}%;top:{y1:.2f}%;'
        f"width:{x2 - x1:.2f}%;height:{y2 - y1:.2f}%;--c:{colour};"
        f'{properties(weights)}">{tag}</div>'
    )


def properties(weights: Float[np.ndarray, " words"]) -> str:
    """The attention weights of an item as CSS properties."""
    return ";".join(f"--w{i}:{weight:.2f}" for i, weight in enumerate(weights))


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


def label_places(
    boxes: Float[np.ndarray, "M 4"], labels: Sequence[str], proportion: float
) -> list[str | None]:
    """Corners of boxes at which labels do not overlap; `None` if no corner is free.

    Args:
        boxes: float `(M, 4)`, x1, y1, x2, y2.
        labels: List of str.
        proportion: float, width of the image divided by its height.
    """
    height = LABEL_HEIGHT * proportion
    taken: list[tuple[float, float, float]] = []  # centre, width and upper edge
    places: list[str | None] = []
    for (x1, y1, x2, y2), label in zip(boxes, labels, strict=True):
        width = LETTER_WIDTH * (len(label) + 1)
        corners = {
            "": (x1, y1),
            "end": (x2 - width, y1),
            "low": (x1, y2 - height),
            "end low": (x2 - width, y2 - height),
        }
        free = [
            name
            for name, (x, y) in corners.items()
            if 0 <= x <= 1 - width
            and 0 <= y <= 1 - height
            and not any(
                abs(x + width / 2 - a) < (width + b) / 2 and abs(y - c) < height
                for a, b, c in taken
            )
        ]
        place = free[0] if label and free else None
        places.append(place)
        if place is not None:
            x, y = corners[place]
            taken.append((x + width / 2, width, y))
    return places


def shares(prediction: Prediction) -> str:
    """For each word, a sentence on the items with most attention."""
    if prediction.attention is None or not prediction.items or not prediction.text:
        return ""
    lines = []
    for i, row in enumerate(prediction.attention):
        named = [(x, prediction.items[j]) for j, x in enumerate(row)]
        named = sorted(((x, name) for x, name in named if is_word(name)), reverse=True)
        most = ", ".join(f"{html.escape(name)} {x:.0%}" for x, name in named[:NAMED])
        lines.append(f'<span class="s{i}">Attends most to {most}</span>')
    return f'<p class="shares" aria-live="polite">{"".join(lines)}</p>'


def best(prediction: Prediction) -> str:
    """The best texts with their log-probabilities; answers with their probabilities."""
    if len(prediction.best) < 2:
        return ""
    scores = [score for _, score in prediction.best]
    answers = min(scores) >= 0  # log-probabilities are negative
    rows = [
        f"<tr><td>{html.escape(text)}</td>"
        f'<td class="number">{format(score, ".1%" if answers else ".2f")}</td></tr>'
        for text, score in prediction.best
    ]
    score_name = "Probability" if answers else "Log-probability"
    head = f'<tr><th>The best</th><th class="number">{score_name}</th></tr>'
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def index_style(prediction: Prediction) -> str:
    """The style that selects the weights of the hovered word, or the chosen one."""
    rules = []
    for pattern in (
        ".kc:has(.w{i}:checked):not(:has(label:hover))",
        ".kc:has(.l{i}:hover)",
    ):
        for i in range(len(prediction.words)):
            chosen = pattern.format(i=i)
            # !important: Gradio makes the rules of `STYLE` more specific than these.
            rules.append(
                f"{chosen} .items>*{{--w:var(--w{i})!important}}"
                f"{chosen} .quiet{{opacity:clamp(0,var(--w)*1.5,1)!important}}"
                f"{chosen} .box span{{opacity:clamp(0,(var(--w) - .25)*4,1)!important}}"
                f"{chosen} .shares .s{i}{{display:inline!important}}"
            )
    return f"<style>{''.join(rules)}</style>"
