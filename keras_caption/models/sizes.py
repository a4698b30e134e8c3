"""Sizes of models that depend on other sizes or on vocabularies."""

from keras_caption.base.errors import InputError
from keras_caption.text import Tokenizer


def check_heads(model_dim: int, num_heads: int) -> None:
    """Refuses a size of a model that is no multiple of its number of heads."""
    if model_dim % num_heads:
        raise InputError(
            f"model_dim={model_dim} cannot be divided among num_heads={num_heads}."
        )


def resolve_size(name: str, tokenizer: Tokenizer | None, size: int | None) -> int:
    """The vocabulary size of a tokenizer or, without one, the argument `size`.

    Args:
        name: str, name of the tokenizer's argument, for messages.
        tokenizer: `keras_caption.text.Tokenizer`, or `None`.
        size: int, or `None`.

    Raises:
        InputError: If both are missing, or the sizes differ.
    """
    if tokenizer is None:
        if size is None:
            raise InputError(f"A model needs a `{name}` or a `{name}_size`.")
        return size
    if size not in (None, len(tokenizer)):
        raise InputError(
            f"{name}_size={size}, but the {name} has {len(tokenizer)} tokens: one of "
            "them suffices."
        )
    return len(tokenizer)
