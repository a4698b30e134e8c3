from typing import Any

import numpy as np
from jaxtyping import Float32, Int, UInt8
from keras import ops
from matplotlib.figure import Figure, SubFigure

from keras_caption.apps.report.visualization.drawing import draw
from keras_caption.apps.report.visualization.fonts import find_fonts
from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError
from keras_caption.models import Ensemble, Seq2Seq
from keras_caption.text import BOS, EOS, PAD, CharacterTokenizer, Vocabulary

TEXT = {"fontsize": 11, "parse_math": False}  # a $ in a word is no formula
WIDTH = 20  # inches, of figures of wide images or of several captions
PANEL, HEIGHT = 2.2, 2.7  # inches, of figures of narrower images
MIN_WIDTH = 9  # inches, for the caption and the legend
LEGEND_HEIGHT = 0.4  # inches
OWN = 0.2  # distance of a word's attention from the mean, for a panel of its own
EOS_WORD = "<eos>"
LEGEND = (
    "Attention weights, on one scale per caption: the mean over all words, then each "
    "word whose weights differ from that mean by a fifth or more."
)


def attention_over_memory(
    model: Seq2Seq | Ensemble, inputs: dict[str, Tensor], tokens: Int[Tensor, " T"]
) -> tuple[list[str], Float32[np.ndarray, "words M"]]:
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
        InputError: If the model has no vocabulary of words, there is more than one
            image or caption, the caption has no tokens, or the image has a fault.
    """
    vocabulary = model.vocabulary
    if not isinstance(vocabulary, Vocabulary | CharacterTokenizer):
        raise InputError(f"The model '{model.name}' has no vocabulary of words.")
    inputs = read_one(model, inputs)
    tokens = tokens_of(tokens)
    previous = ops.convert_to_tensor([[BOS, *tokens[:-1]]], dtype="int32")
    memory: Any = model.encode(inputs)
    weights = ops.convert_to_numpy(model.attention(previous, memory))[0]
    return [vocabulary.words[token] for token in tokens], weights


def attention_over_words(
    model: Seq2Seq | Ensemble,
    inputs: dict[str, Any],
    tokens: Int[Tensor, " T"],
    image: UInt8[np.ndarray, "height width 3"] | None = None,
) -> Figure:
    """Plots the attention of a captioner, for words that differ from the mean.

    The first panel shows the mean over all words of the caption. Further panels show
    the words whose attention differs from the mean by a fifth or more. All share one
    scale. Panels stand side by side or, if the image is as wide as a film strip, one
    below another, with the words on the left.

    Args:
        model, inputs, tokens: See `attention_over_memory`. Inputs that the model does
            not read, such as `times` of frames, may be shown too.
        image: uint8 `(height, width, 3)`, shown in every panel. Defaults to that of
            `keras_caption.inputs.InputKind.blank`.

    Returns:
        `matplotlib.figure.Figure`; `figure.savefig(path)` writes it.

    Raises:
        InputError: As `attention_over_memory` raises it, or as
            `keras_caption.apps.report.visualization.drawing.draw`.
    """
    row = Row(model, inputs, tokens, image)
    width = WIDTH if row.is_stacked else max(PANEL * len(row.panels), MIN_WIDTH)
    figure = Figure(figsize=(width, row.height + LEGEND_HEIGHT), layout="constrained")
    row.plot(model, figure, len(row.panels))
    add_legend(figure)
    return find_fonts(figure)


class Row:
    """A row of panels that show the attention of a caption.

    Args:
        model, inputs, tokens, image: See `attention_over_words`.

    Attributes:
        panels: List of pairs of a word and its weights, the first of all words.
        is_stacked: bool, whether panels stand one below another.
        height: float, in inches.
    """

    def __init__(self, model, inputs, tokens, image):
        words, weights = attention_over_memory(model, inputs, tokens)
        self.inputs = {**inputs, **read_one(model, inputs)}
        self.image = model.memory_kind.blank(self.inputs) if image is None else image
        self.panels = own_panels(words, weights)
        self.caption = " ".join(word for word in words if word != EOS_WORD)
        height, width = self.image.shape[:2]
        self.is_stacked = width > 3 * height
        self.height = HEIGHT
        if self.is_stacked:
            strip = min(1.3 * WIDTH * height / width, 1.5)
            self.height = len(self.panels) * strip + 0.6

    def plot(self, model: Any, figure: Figure | SubFigure, columns: int) -> None:
        """Plots the panels into a figure with this number of columns."""
        shape = (len(self.panels), 1) if self.is_stacked else (1, columns)
        axes = figure.subplots(*shape, squeeze=False).ravel()
        figure.suptitle(self.caption, x=0.01, ha="left", **{**TEXT, "fontsize": 13})
        most = max(weights.max() for _, weights in self.panels)
        names = names_of(model, self.inputs)
        for panel in axes[len(self.panels) :]:
            panel.axis("off")
        for panel, (word, weights) in zip(axes, self.panels, strict=False):
            inputs = {**self.inputs, "labels": labels_of(names, weights)}
            show(
                panel, model.memory_kind, inputs, weights / max(most, 1e-9), self.image
            )
            if self.is_stacked:
                panel.set_anchor("W")
                panel.set_ylabel(word, rotation=0, ha="right", va="center", **TEXT)
                panel.tick_params(labelbottom=panel is axes[-1], bottom=False)
            else:
                panel.set_title(word, **TEXT)
                panel.tick_params(labelbottom=False, bottom=False)


def own_panels(words: list[str], weights: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Selects the panels: the mean over words, and words that differ from it.

    Args:
        words: List of str.
        weights: float `(words, M)`, which add up to 1 for each word.

    Returns:
        List of pairs of a word, the first of which is `"all words"`, and weights.
    """
    spoken = [i for i, word in enumerate(words) if word != EOS_WORD] or [0]
    mean = weights[spoken].mean(axis=0)
    # Total variation distance, from 0 to 1.
    distance = np.abs(weights - mean).sum(axis=1) / 2
    distinct = [(words[i], weights[i]) for i in spoken if distance[i] >= OWN]
    return [("all words", mean), *distinct]


def names_of(model: Any, inputs: dict[str, Any]) -> list[str] | None:
    """Returns the categories of regions, if the model reads objects."""
    if not getattr(model, "categories", None) or "regions" not in inputs:
        return None
    return model.region_names(inputs["regions"][0])


def labels_of(names: list[str] | None, weights: np.ndarray) -> list[str]:
    """Writes the labels of a memory's items: their names, if any, and weights."""
    names = [""] * len(weights) if names is None else names
    return [
        f"{name} {share:.0%}".strip()
        for name, share in zip(names, weights, strict=True)
    ]


def show(
    panel: Any,
    kind: Any,
    inputs: dict[str, Any],
    weights: np.ndarray,
    image: np.ndarray,
) -> None:
    """Shows an image in a panel, with attention weights."""
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    panel.imshow(image)
    draw(panel, kind, inputs, weights, image.shape[:2])


def add_legend(figure: Figure, text: str = LEGEND) -> None:
    """Adds a line below a figure that explains its panels."""
    figure.supxlabel(text, x=0.01, ha="left", fontsize=10)


def read_one(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Reads the encoder's inputs of one example.

    Raises:
        InputError: If there are several examples, or the example has a fault.
    """
    inputs = model.read(inputs, check=True)
    size = len(next(iter(inputs.values())))
    if size != 1:
        raise InputError(
            f"Attention is shown for one {model.kinds[0].noun}: a batch of 1 is "
            f"expected. Received: a batch of {size}."
        )
    return inputs


def tokens_of(caption: Any) -> list[int]:
    """Returns the tokens of one caption, up to EOS or padding.

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
