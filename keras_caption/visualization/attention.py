from typing import Any

import numpy as np
from keras import ops
from matplotlib.figure import Figure, SubFigure

from keras_caption.errors import InputError
from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.text import BOS, EOS, PAD

TEXT = {"fontsize": 11, "parse_math": False}  # words, in which $ begins no formula
WIDTH = 20  # inches, of figures of wide images or of several captions


def attention_over_memory(
    model: Seq2Seq | Ensemble, inputs: dict[str, Any], tokens: Any
) -> tuple[list[str], np.ndarray]:
    """Computes what a captioner attends to, token by token.

    Args:
        model: `keras_caption.models.Captioner` or `Ensemble`.
        inputs: dict of the model's inputs for one image, batch size 1.
        tokens: int `(T,)`, one caption of those that `generate_tokens` returns.

    Returns:
        The words, a list of str ending with `"<eos>"` if the caption is finished; and
        float32 `(words, M)`: for each word, the weights over the memory's items, such
        as regions, or the cells of a grid row by row, of the last block's
        cross-attention, averaged over heads.

    Raises:
        InputError: If there is more than one image or caption, the caption has no
            tokens, or nothing can be predicted from the image.
    """
    check_one(model, inputs)
    tokens = tokens_of(tokens)
    previous = ops.convert_to_tensor([[BOS, *tokens[:-1]]], dtype="int32")
    weights = ops.convert_to_numpy(model.attention(previous, model.encode(inputs)))[0]
    return [model.vocabulary.words[token] for token in tokens], weights


def attention_over_words(
    model: Seq2Seq | Ensemble,
    inputs: dict[str, Any],
    tokens: Any,
    image: np.ndarray | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """Plots what a captioner attends to, a panel for each word of a caption.

    What is not attended to is pale. Panels stand side by side or, if the image is as
    wide as a film strip, one below another, with the words at their left.

    Args:
        model, inputs, tokens: Of `attention_over_memory`. Inputs that the model does
            not read may be shown too, such as `times` of frames.
        image: uint8 `(height, width, 3)`, shown in every panel. Defaults to that of
            `keras_caption.inputs.InputKind.blank`.
        figure: `matplotlib.figure.Figure` or `SubFigure` to plot into. Defaults to a
            new one.

    Returns:
        The figure; `figure.savefig(path)` writes a new one.

    Raises:
        InputError: As `attention_over_memory` raises it, or if the kind of input does
            not know how attention is drawn, see `keras_caption.inputs.InputKind.draw`.
    """
    check_one(model, inputs)
    inputs = {**inputs, **model.prepare_inputs(inputs)}
    words, weights = attention_over_memory(model, inputs, tokens)
    kind = model.memory_kind
    if image is None:
        image = kind.blank(inputs)
    stacked = is_wide(image)
    if figure is None:
        width = WIDTH if stacked else 1.6 * len(words)
        size = width, height_of(image, len(words))
        figure = Figure(figsize=size, layout="constrained")
    shape = (len(words), 1) if stacked else (1, len(words))
    panels = figure.subplots(*shape, squeeze=False).ravel()
    for panel, word, of_word in zip(panels, words, weights, strict=True):
        panel.set(xticks=[], yticks=[], anchor="W" if stacked else "C")
        panel.spines[:].set_visible(False)
        brightness = kind.draw(panel, inputs, relative(of_word), image.shape[:2])
        pale = (255 - image) * (0.15 + 0.85 * brightness)
        panel.imshow((255 - pale).astype("uint8"))
        if stacked:
            panel.set_ylabel(word, rotation=0, ha="right", va="center", **TEXT)
            panel.tick_params(labelbottom=panel is panels[-1], bottom=False)
        else:
            panel.set_title(word, **TEXT)
            panel.tick_params(labelbottom=False, bottom=False)
    return figure


def check_one(model: Any, inputs: dict[str, Any]) -> None:
    """Raises `InputError` unless inputs are of one example, without faults."""
    sizes = [len(values) for values in model.read_inputs(inputs, check=True).values()]
    if sizes[0] != 1:
        raise InputError(
            f"Attention is shown for one {model.kinds[0].noun}: a batch of 1 is "
            f"expected. Received: a batch of {sizes[0]}."
        )


def tokens_of(caption: Any) -> list[int]:
    """The tokens of one caption, up to EOS or padding.

    Raises:
        InputError: If there are none, or captions of several images.
    """
    if isinstance(caption, tuple):  # tokens and scores, from `generate_tokens`
        raise InputError(
            "Attention is shown for one caption: tokens of shape (T,) are expected. "
            f"Received: a tuple of {len(caption)}."
        )
    tokens = np.asarray(caption)
    if tokens.ndim != 1:
        raise InputError(
            "Attention is shown for one caption: tokens of shape (T,) are expected. "
            f"Received: {tokens.shape}."
        )
    ends = np.flatnonzero((tokens == EOS) | (tokens == PAD))
    if len(ends):
        tokens = tokens[: ends[0] + (tokens[ends[0]] == EOS)]
    if not len(tokens):
        raise InputError("Attention is shown word by word: the caption has no tokens.")
    return tokens.tolist()


def relative(weights: np.ndarray) -> np.ndarray:
    """Attention weights, divided by the greatest."""
    return weights / max(weights.max(), 1e-9)


def is_wide(image: np.ndarray) -> bool:
    """Whether an image is so wide that panels of it are stacked."""
    height, width = image.shape[:2]
    return width > 3 * height


def height_of(image: np.ndarray, panels: int) -> float:
    """Height in inches of as many panels of an image as a caption has words."""
    if not is_wide(image):
        return 2.2
    height, width = image.shape[:2]
    return panels * min(WIDTH * height / width, 1.25) + 0.3
