"""Kinds of numeric arguments, validated where values enter the library.

They are types for pydantic, so that schemas of configurations share them.
"""

from typing import Annotated

import numpy as np
from pydantic import Field, ValidationError

from keras_caption.errors import InputError
from keras_caption.validation import adapter, describe

Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
ShareBelowOne = Annotated[float, Field(ge=0, lt=1)]


def check(kind, **arguments):
    """Checks that arguments are of a kind.

    Args:
        kind: Type that pydantic validates, such as `Count`.
        **arguments: Values by name.

    Raises:
        InputError: If a value is not of the kind. The message names the argument.
    """
    for name, value in arguments.items():
        value = value.item() if isinstance(value, np.generic) else value
        try:
            adapter(kind).validate_python(value, strict=True)
        except ValidationError as error:
            problem = describe(error).removeprefix("content: ")
            raise InputError(f"`{name}`: {problem}.") from None
