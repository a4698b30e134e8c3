"""Numbers among the arguments of the models."""

from typing import Any

from keras_caption.arguments import Count, CountOrZero, ShareBelowOne, check
from keras_caption.errors import InputError
from keras_caption.text import Vocabulary

SIZES = {
    **dict.fromkeys(
        (
            "region_dim",
            "grid_height",
            "grid_width",
            "grid_dim",
            "num_layers",
            "model_dim",
            "embedding_dim",
            "num_heads",
            "decoder_heads",
            "feedforward_dim",
            "geometry_dim",
            "image_area",
            "caption_area",
        ),
        Count,
    ),
    "vocabulary_size": Count | None,
    "decoder_layers": Count | None,
    "caption_length": Count | None,
    "area_layers": CountOrZero,
    "dropout": ShareBelowOne,
    "branch_dropout": ShareBelowOne | None,
    "refining_dropout": ShareBelowOne,
    "aoa_dropout": ShareBelowOne,
}


def check_sizes(arguments: dict[str, Any]) -> None:
    """Checks the numbers among a constructor's arguments.

    Args:
        arguments: dict from name to value; names that are not in `SIZES` are ignored.

    Raises:
        InputError: If a number is out of range. The message names the argument.
    """
    for name, kind in SIZES.items():
        if name in arguments:
            check(kind, **{name: arguments[name]})


def check_heads(model_dim: int, num_heads: int) -> None:
    """Refuses a size that heads cannot share evenly."""
    if model_dim % num_heads:
        raise InputError(
            f"model_dim={model_dim} cannot be divided among num_heads={num_heads}."
        )


def resolve_vocabulary_size(
    vocabulary: Vocabulary | None, vocabulary_size: int | None
) -> int:
    """The number of tokens, from a vocabulary or, without one, as given."""
    if vocabulary is None and vocabulary_size is None:
        raise InputError("A captioner needs a `vocabulary` or a `vocabulary_size`.")
    if vocabulary is None:
        return vocabulary_size
    if vocabulary_size not in (None, len(vocabulary)):
        raise InputError(
            f"vocabulary_size={vocabulary_size}, but the vocabulary has "
            f"{len(vocabulary)} words: one of them suffices."
        )
    return len(vocabulary)
