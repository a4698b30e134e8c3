"""Inputs of models: one class for each kind, and no other code names a kind.

A kind of your own is a subclass of `InputKind`, added to `KINDS`.
"""

from typing import Any

import keras

from keras_caption.base.errors import InputError
from keras_caption.inputs.frames import Frames
from keras_caption.inputs.grid import Grid
from keras_caption.inputs.image_vector import ImageVector
from keras_caption.inputs.input_kind import InputKind
from keras_caption.inputs.question import QuestionText
from keras_caption.inputs.reading import (
    find_faults,
    missing_inputs,
    padded,
    read,
    read_served,
)
from keras_caption.inputs.regions import Regions
from keras_caption.inputs.text import Text
from keras_caption.text import Tokenizer

KINDS: list[type[InputKind]] = [
    Regions,
    Grid,
    Frames,
    Text,
    QuestionText,
    ImageVector,
]

__all__ = [
    "KINDS",
    "Frames",
    "Grid",
    "ImageVector",
    "InputKind",
    "QuestionText",
    "Regions",
    "Text",
    "find_faults",
    "kinds_of",
    "missing_inputs",
    "of_example",
    "padded",
    "read",
    "read_served",
    "sizes_of",
]


def kinds_of(
    specs: dict[str, keras.KerasTensor],
    ignored: tuple[str, ...] = (),
    tokenizers: dict[str, Tokenizer | None] | None = None,
) -> list[InputKind]:
    """Finds the kinds of input of a model, by the names of its inputs.

    Args:
        specs: dict of symbolic inputs, as a functional encoder's `input`.
        ignored: Names of inputs that the model takes, but does not depend on.
        tokenizers: dict from the names of text inputs to their
            `keras_caption.text.Tokenizer`, or to `None` if the model has none.

    Returns:
        List of `InputKind`, in the order of `KINDS`.

    Raises:
        InputError: If the inputs are not a dict, or an input is of no known kind.
    """
    if not isinstance(specs, dict):
        raise InputError(
            "An encoder should be a functional model of a dict of inputs, by name. "
            f"Received inputs: {specs}"
        )
    tokenizers = tokenizers or {}
    kinds = [
        kind(specs, ignored, tokenizers.get(kind.keys[0]))
        for kind in KINDS
        if kind.keys[0] in specs
    ]
    known = {name for kind in kinds for name in kind.keys}
    for name in specs:
        if name not in known:
            first = ", ".join(kind.keys[0] for kind in KINDS)
            raise InputError(
                f"No kind of input has the name {name!r}: kinds of input are {first}; "
                "register others in `keras_caption.inputs.KINDS`."
            )
    return kinds


def of_example(example: dict[str, Any], names: Any = None) -> dict[str, Any]:
    """Takes the inputs of models from an example of a dataset.

    Args:
        example: dict of TensorFlow tensors.
        names: Names of the inputs to take, such as a model's `input_specs`. Defaults to
            all.

    Returns:
        dict of tensors without batch dimension.
    """
    inputs: dict[str, Any] = {}
    for kind in KINDS:
        inputs |= kind.of_example(example, kind.keys if names is None else names)
    return inputs


def sizes_of(features: dict[str, Any]) -> dict[str, int]:
    """Returns arguments of models that a dataset decides, such as `region_dim`.

    Args:
        features: TFDS features of the dataset.
    """
    return {name: x for kind in KINDS for name, x in kind.sizes_of(features).items()}
