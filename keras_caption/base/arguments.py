"""Types of arguments: names for type hints, and numbers validated by pydantic."""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
from pydantic import AfterValidator, FailFast, Field, ValidationError
from pydantic_core import PydanticCustomError

from keras_caption.base.errors import InputError
from keras_caption.base.validation import adapter, describe

Tensor = Any  # a NumPy array, a tensor of the backend or a `keras.KerasTensor`
Shape = tuple[int | None, ...]


class FirstFault(FailFast):
    """Ends the validation of a list or tuple at its first fault.

    Each fault takes a kilobyte: those of all items of a long list might fill memory.
    Unions need the hash, which pydantic's own class lacks.
    """

    def __hash__(self):
        return hash(self.fail_fast)


class KerasOptions(TypedDict, total=False):
    """Keywords of every Keras layer and model, for type checkers."""

    name: str | None
    trainable: bool
    dtype: Any


def check_float32(value: float) -> float:
    """Returns a number; a pydantic error if float32 rounds it to 0 or to infinity."""
    if value and not 2.0**-126 <= abs(value) < 2.0**128:
        raise PydanticCustomError(
            "float32", "Input should be a number of float32, from 1.2e-38 to 3.4e38"
        )
    return value


InFloat32 = AfterValidator(check_float32)

# Validated where values enter the library, and shared by schemas of configurations.
Count = Annotated[int, Field(ge=1)]
Area = Annotated[int, Field(ge=1, le=64)]  # their number grows with its square
# Of saved models, which strangers may have made, what costs time or memory without
# weights, or before their number is known.
Layers = Annotated[int, Field(ge=1, le=100)]
Side = Annotated[int, Field(ge=1, le=1024)]  # of a grid of features
Pixels = Annotated[int, Field(ge=1, le=4096)]  # of a side of a photo that is resized
Levels = Annotated[list[Area], Field(max_length=16)]  # of windows of a photo
Items = Annotated[int, Field(ge=1, le=1024)]  # objects of a photo, frames of a clip
CountOrZero = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Finite = Annotated[float, Field(allow_inf_nan=False), InFloat32]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), InFloat32]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), InFloat32]
Seconds = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
SecondsAboveZero = Annotated[float, Field(gt=0, le=10**9, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, lt=2**16)]  # 0 for any free one
Share = Annotated[float, Field(ge=0, le=1)]
ShareBelowOne = Annotated[float, Field(ge=0, lt=1)]
ShareAboveZero = Annotated[float, Field(gt=0, le=1), InFloat32]
Samples = Annotated[int, Field(ge=1, le=100)]  # of an image; each takes its memory
TextByImage = Mapping[Any, str]  # such as captions
TextsByImage = Mapping[Any, Sequence[str]]  # such as references
Precision = Literal["float32", "int8"]  # of weights for another engine


def check_rising(points: list[list[float]]) -> list[list[float]]:
    """Returns points of a function; a pydantic error unless the function rises."""
    if (np.diff(points, axis=0) < 0).any():
        raise PydanticCustomError("rising", "Input should be pairs that rise")
    return points


# Points of a rising function from shares to shares, a list of pairs.
Calibration = Annotated[
    list[Annotated[list[Share], Field(min_length=2, max_length=2)]],
    Field(min_length=1),
    AfterValidator(check_rising),
]


def check(kind: Any, **arguments: Any) -> None:
    """Checks that arguments are of a type.

    Args:
        kind: Type that pydantic validates, such as `Count`.
        **arguments: The values, by the name of the argument.

    Raises:
        InputError: If a value is not of the type. The message names the argument.
    """
    for name, value in arguments.items():
        checked(kind, name, value)


def checked(kind: Any, name: str, value: Any) -> Any:
    """The value of an argument, as its type has it, see `check`."""
    value = value.item() if isinstance(value, np.generic) else value
    try:
        return adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        problem = describe(error).removeprefix("content: ")
        raise InputError(f"`{name}`: {problem}.") from None


def entries(documented: Any) -> dict[str, str]:
    """What the arguments of a class are, by name.

    Args:
        documented: Class whose docstring has entries of `Args:` or `Attributes:`.

    Returns:
        dict from name to the first sentence of its entry, without its type.
    """
    _, *sections = re.split(
        r"^(?:Args|Attributes):\n", inspect.getdoc(documented) or "", flags=re.M
    )
    sentences: dict[str, str] = {}
    for section in sections:
        for names, text in re.findall(
            r"^    ([\w, ]+):((?:.*\n?)(?:^     .*\n?)*)", section, re.M
        ):
            text = re.sub(r"^(int|float|bool|str), ", "", " ".join(text.split()))
            sentence = re.split(r"\. (?=[A-Z`])", text)[0].rstrip(".").replace("`", "")
            sentences |= dict.fromkeys(names.split(", "), sentence)
    return sentences
