"""Types of arguments: names for type hints, and numbers validated by pydantic."""

from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError

from keras_caption.errors import InputError
from keras_caption.validation import adapter, describe

Tensor = Any  # a NumPy array, a tensor of the backend or a `keras.KerasTensor`
Shape = tuple[int | None, ...]

# Validated where values enter the library, and shared by schemas of configurations.
Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
ShareBelowOne = Annotated[float, Field(ge=0, lt=1)]


def check(kind: Any, **arguments: Any) -> None:
    """Checks that arguments are of a type.

    Args:
        kind: Type that pydantic validates, such as `Count`.
        **arguments: The values, by the name of the argument.

    Raises:
        InputError: If a value is not of the type. The message names the argument.
    """
    for name, value in arguments.items():
        value = value.item() if isinstance(value, np.generic) else value
        try:
            adapter(kind).validate_python(value, strict=True)
        except ValidationError as error:
            problem = describe(error).removeprefix("content: ")
            raise InputError(f"`{name}`: {problem}.") from None
