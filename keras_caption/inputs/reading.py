"""Inputs of models: taken from a batch, validated and completed.

The same code serves all kinds of input and all models, in Python and exported graphs.
"""

import collections.abc
import math
from typing import Any

import keras
import numpy as np
from jaxtyping import Bool
from keras import ops

from keras_caption.base.arguments import Tensor
from keras_caption.base.compilation import round_up
from keras_caption.base.errors import InputError
from keras_caption.formats.faults import reason_of
from keras_caption.inputs.input_kind import InputKind


def missing_inputs(kinds: list[InputKind], batch: Any) -> list[str]:
    """Returns the names of required inputs that a batch lacks."""
    return [name for kind in kinds for name in kind.required if batch.get(name) is None]


def read(
    kinds: list[InputKind],
    batch: Any,
    model_name: str,
    check: bool = False,
    first: int = 0,
) -> dict[str, Tensor]:
    """Takes the inputs of a model from a batch, and completes them with masks.

    Args:
        kinds: List of `InputKind` of the model.
        batch: dict of arrays or tensors; other keys are ignored.
        model_name: str, for messages.
        check: bool, whether to check values as well as shapes. Defaults to `False`.
        first: int, index of the first example in the whole input, for messages.

    Returns:
        dict of tensors, the encoder's inputs.

    Raises:
        InputError: If an input is missing, is not numeric or has a wrong shape; with
            `check`, if an example has a fault, see `find_faults`.
    """
    is_dict = isinstance(batch, collections.abc.Mapping)
    missing = missing_inputs(kinds, batch) if is_dict else []
    if missing or not is_dict:
        required = ", ".join(name for kind in kinds for name in kind.required)
        if not is_dict:
            raise InputError(
                f"The model '{model_name}' needs a dict of {required}. "
                f"Received: {type(batch).__name__}"
            )
        raise InputError(
            f"The model '{model_name}' needs {required}. "
            f"Missing from the batch: {', '.join(missing)}"
        )
    inputs: dict[str, Tensor] = {}
    for kind in kinds:
        tensors = {
            name: to_tensor(name, batch[name])
            for name in kind.specs
            if batch.get(name) is not None
        }
        inputs |= kind.read(tensors, model_name)
    if check:
        check_values(kinds, inputs, batch.get("image_id"), first)
    return complete(kinds, inputs)


def to_tensor(name: str, values: Any) -> Tensor:
    """Converts numbers to a tensor.

    Raises:
        InputError: If the values are not numbers, or are lists of different lengths.
    """
    try:
        tensor = ops.convert_to_tensor(values)
        kind = keras.backend.standardize_dtype(tensor.dtype)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}` should be an array of numbers, padded to one shape: "
            f"{reason_of(error)}."
        ) from None
    if kind == "string":
        raise InputError(f"`{name}` should be an array of numbers. Received: strings")
    return tensor


def complete(kinds: list[InputKind], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Completes the inputs that `read` of the kinds returned, for the encoder."""
    return {
        name: x
        for kind in kinds
        for name, x in kind.complete(inputs).items()
        if name in kind.specs
    }


def padded(kinds: list[InputKind], inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Appends padding, up to the numbers of items that `round_up` returns.

    Args:
        kinds: List of `InputKind` of the model.
        inputs: dict of tensors, as `complete` returns it, of known shapes.

    Returns:
        dict of tensors. Predictions do not change.
    """
    inputs = dict(inputs)
    for kind in kinds:
        for name in kind.padded_inputs:
            values = inputs[name]
            count = values.shape[1]
            size = min(round_up(count), kind.greatest or math.inf)
            if size > count:
                others = [(0, 0)] * (len(values.shape) - 2)
                behind = [(0, 0), (0, size - count), *others]
                inputs[name] = ops.pad(values, behind)
    return inputs


def find_faults(
    kinds: list[InputKind], inputs: dict[str, Tensor]
) -> dict[str, Bool[Tensor, " batch"]]:
    """Finds the examples that no model can read.

    Args:
        kinds: List of `InputKind` of the model.
        inputs: dict of tensors, as the kinds' `read` returns it.

    Returns:
        dict from a problem, as a phrase, to the examples that have it, bool
        `(batch,)`.
    """
    return {text: x for kind in kinds for text, x in kind.faults(inputs).items()}


def check_values(
    kinds: list[InputKind], inputs: dict[str, Tensor], ids: Any = None, first: int = 0
) -> None:
    """Checks that a model can read every example of a batch.

    Args:
        kinds: List of `InputKind` of the model.
        inputs: dict of tensors, as the kinds' `read` returns it.
        ids: Ids of the examples, for messages, or `None`.
        first: int, index of the first example in the whole input, for messages.

    Raises:
        InputError: If the batch is empty, if inputs have different numbers of examples,
            or if an example has a fault, see `find_faults`.
    """
    noun = kinds[0].noun
    counts = {name: len(values) for name, values in inputs.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"The inputs differ in their number of {noun}s: {counts}.")
    if 0 in counts.values():
        raise InputError(f"The batch holds no {noun}.")
    for kind in kinds:
        for problem, wrong in kind.faults(inputs).items():
            indices = np.flatnonzero(ops.convert_to_numpy(wrong))
            if len(indices):
                index = int(indices[0])
                known = "" if ids is None else f" (id {np.asarray(ids)[index]})"
                raise InputError(
                    f"{kind.noun.capitalize()} {first + index} of the batch{known} "
                    f"{problem}."
                )


def read_served(
    kinds: list[InputKind], served: dict[str, Tensor]
) -> tuple[dict[str, Tensor], Bool[Tensor, " batch"]]:
    """Takes the inputs of a model from those of an exported signature.

    Args:
        kinds: List of `InputKind` of the model.
        served: dict of tensors, the signature's inputs.

    Returns:
        dict of tensors, as `read` returns it, with zeros in place of examples that have
        a fault; and bool `(batch,)`, True for examples without a fault.
    """
    inputs: dict[str, Tensor] = {}
    for kind in kinds:
        inputs |= kind.from_served(served)
    faults = list(find_faults(kinds, inputs).values())
    valid = ~ops.any(ops.stack(faults), axis=0)

    def blank(values):
        shape = (-1,) + (1,) * (len(values.shape) - 1)
        return ops.where(ops.reshape(valid, shape), values, ops.zeros_like(values))

    inputs = {name: blank(values) for name, values in inputs.items()}
    return complete(kinds, inputs), valid
