"""Numbers among the arguments of the models."""

from typing import Any

from keras_caption.arguments import Area, Count, CountOrZero, ShareBelowOne, check
from keras_caption.errors import InputError
from keras_caption.text import Tokenizer

SIZES = {
    **dict.fromkeys(
        (
            "region_dim",
            "grid_height",
            "grid_width",
            "grid_dim",
            "frame_dim",
            "num_layers",
            "model_dim",
            "embedding_dim",
            "num_heads",
            "decoder_heads",
            "feedforward_dim",
            "pooling_dim",
            "fusion_dim",
            "geometry_dim",
        ),
        Count,
    ),
    **dict.fromkeys(
        ("image_area", "frame_area", "caption_area", "source_area", "target_area"),
        Area,
    ),
    "vocabulary_size": Count | None,
    "source_size": Count | None,
    "target_size": Count | None,
    "question_size": Count | None,
    "decoder_layers": Count | None,
    "caption_length": Count | None,
    "area_layers": CountOrZero,
    "geometry_layers": CountOrZero | None,
    "dropout": ShareBelowOne,
    "attention_dropout": ShareBelowOne | None,
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


def resolve_size(name: str, tokenizer: Tokenizer | None, size: int | None) -> int:
    """The vocabulary size of a tokenizer or, without one, as given.

    Args:
        name: str, name of the argument that the tokenizer is, for messages.
        tokenizer: `keras_caption.text.Tokenizer`, or `None`.
        size: int, or `None`.

    Raises:
        InputError: If both are missing, or they differ.
    """
    if tokenizer is None and size is None:
        raise InputError(f"A model needs a `{name}` or a `{name}_size`.")
    if tokenizer is None:
        return size
    if size not in (None, len(tokenizer)):
        raise InputError(
            f"{name}_size={size}, but the {name} has {len(tokenizer)} tokens: one of "
            "them suffices."
        )
    return len(tokenizer)
