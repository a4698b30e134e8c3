import math

import numpy as np
from keras import ops
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from keras_caption.text import BOS, EOS

FRAMES = 3  # regions that are framed


def attention_over_regions(model, inputs, tokens):
    """Where a captioner looks while it says each word of a caption.

    Args:
        model: `keras_caption.models.Captioner` or `Ensemble`.
        inputs: dict of the model's inputs for one image, batch size 1.
        tokens: int `(T,)`, the caption as `generate_tokens` returns it.

    Returns:
        The words, a list of str ending with `"<eos>"` where the caption ended, and
        float32 `(words, N)`: for each word, the weights over the regions, or over
        the cells of the grid row by row, of the last block's cross-attention,
        averaged over heads.
    """
    tokens = list(tokens)
    if EOS in tokens:
        tokens = tokens[: tokens.index(EOS) + 1]
    shown = ops.convert_to_tensor([[BOS, *tokens[:-1]]], dtype="int32")
    weights = ops.convert_to_numpy(model.attention(shown, model.encode(inputs)))[0]
    return [model.vocabulary.words[token] for token in tokens], weights


def attention_over_words(model, inputs, tokens, picture=None, figure=None):
    """Draws where a captioner looks, a panel for each word of a caption.

    Args:
        model, inputs, tokens: Of `attention_over_regions`.
        picture: uint8 `(height, width, 3)` to draw on; white if omitted.
        figure: `matplotlib.figure.Figure` or `SubFigure` to draw into; a new one
            if omitted.

    Returns:
        The figure; `figure.savefig(path)` writes a new one.
    """
    inputs = model.image_inputs(inputs)
    words, weights = attention_over_regions(model, inputs, tokens)
    if picture is None:
        picture = np.full((128, 128, 3), 255, "uint8")
    if figure is None:
        figure = Figure(figsize=(1.6 * len(words), 2), layout="constrained")
    panels = figure.subplots(1, len(words), squeeze=False)[0]
    for panel, word, of_word in zip(panels, words, weights, strict=True):
        strengths = of_word / of_word.max()
        if "grid" in model.image_specs:
            cells = np.reshape(strengths, (*model.image_specs["grid"].shape[1:3], 1))
            light = np.array(ops.image.resize(cells, picture.shape[:2]))
        else:
            boxes = ops.convert_to_numpy(inputs["boxes"])[0]
            light = _light_regions(panel, boxes, strengths, picture.shape[:2])
        # What is not looked at fades away.
        panel.imshow((255 - (255 - picture) * (0.15 + 0.85 * light)).astype("uint8"))
        panel.set_title(word, fontsize=11)
        panel.axis("off")
    return figure


def _light_regions(panel, boxes, strengths, size):
    """How bright every pixel is, `(*size, 1)`; frames the regions most looked at."""
    height, width = size
    light = np.zeros((height, width, 1))
    order = np.argsort(strengths)
    for place in order:
        x1, y1, x2, y2 = boxes[place] * [width, height, width, height]
        inside = (slice(int(y1), math.ceil(y2)), slice(int(x1), math.ceil(x2)))
        light[inside] = strengths[place]  # the strongest last
        if place in order[-FRAMES:]:
            frame = Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False)
            alpha = float(strengths[place]) ** 2
            frame.set(edgecolor="crimson", linewidth=2, alpha=alpha)
            panel.add_patch(frame)
    return light
