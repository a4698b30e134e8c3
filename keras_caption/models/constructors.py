"""Constructors of models: everything that follows from their signatures.

The signature of a constructor says what arguments a model has: their names, types and
default values. From it follow the check of their values, the attributes that keep them,
the model's config, and the settings of an experiment.
"""

import functools
import inspect
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import keras

from keras_caption.arguments import check
from keras_caption.errors import InputError, hint
from keras_caption.models.attention import AttentionOptions, options_of

OF_KERAS = "name", "trainable", "dtype"  # arguments that `keras.Model` keeps


def keep_arguments(init: Callable, base_init: Callable) -> Callable:
    """Makes a constructor check its arguments, and keep them as attributes.

    An argument `mechanisms: AttentionOptions` is given as its options, each a keyword.
    What `**kwargs` takes are the arguments of the base class that have default values.
    `dtype` arrives as a dtype policy.

    Args:
        init: `__init__` of a class of models.
        base_init: `__init__` of the class that it inherits from.

    Returns:
        The constructor; `inspect.signature` lists all its arguments by name.
    """
    own = list(inspect.signature(init, eval_str=True).parameters.values())[1:]
    named = [parameter for parameter in own if parameter.kind != parameter.VAR_KEYWORD]
    flat = {p.name: p for parameter in named for p in _flatten(parameter)}
    inherited = _inherited(base_init, flat) if len(named) < len(own) else []

    @functools.wraps(init)
    def construct(self, *args, **kwargs):
        given = _bind(type(self).__name__, signature, (self, *args), kwargs)
        values = {name: given.pop(name, p.default) for name, p in flat.items()}
        for name, value in values.items():
            if name not in OF_KERAS:
                setattr(self, name, value)
        for parameter in named:
            if _is_options(parameter):
                names = options_of(parameter.annotation)
                options = {name: values.pop(name) for name in names}
                values[parameter.name] = AttentionOptions(**options)
        check_arguments(init, values)
        if "dtype" in values:
            values["dtype"] = keras.dtype_policies.get(values["dtype"])
        init(self, **values, **given)

    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([self, *flat.values(), *inherited])
    construct.__signature__ = signature
    return construct


def parameters_of(model: type) -> dict[str, inspect.Parameter]:
    """All arguments of a class of models, by name."""
    parameters = inspect.signature(model.__init__).parameters
    return {name: p for name, p in parameters.items() if name != "self"}


def is_setting(kind: Any) -> bool:
    """Whether values of a type are text, numbers, bool or `None`."""
    origin = get_origin(kind)
    if origin is Annotated:
        return is_setting(get_args(kind)[0])
    if origin in (Union, UnionType):
        return all(map(is_setting, get_args(kind)))
    return origin is Literal or kind in (bool, int, float, str, None, NoneType)


def check_arguments(init: Callable, values: dict[str, Any]) -> None:
    """Checks arguments that are text, numbers or bool.

    Args:
        init: Constructor, whose signature says the types.
        values: dict from name to value.

    Raises:
        InputError: If a value is not of its type. The message names the argument.
    """
    for name, parameter in inspect.signature(init, eval_str=True).parameters.items():
        if name in values and is_setting(parameter.annotation):
            check(parameter.annotation, **{name: values[name]})


def _is_options(parameter):
    kind = parameter.annotation
    return (get_args(kind)[0] if get_origin(kind) is Annotated else kind) is (
        AttentionOptions
    )


def _flatten(parameter):
    """The arguments that a constructor is called with in place of one of its own."""
    if not _is_options(parameter):
        return [parameter]
    return [
        inspect.Parameter(
            name, parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for name, field in options_of(parameter.annotation).items()
    ]


def _inherited(base_init, own):
    """Arguments of the base class that have default values, as keywords."""
    return [
        parameter.replace(kind=parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(base_init).parameters.items()
        if name not in own and parameter.default is not parameter.empty
    ]


def _bind(model, signature, args, kwargs):
    """What a model's constructor is given, by the names of the arguments."""
    model = kwargs.get("name") or model
    known = [name for name in signature.parameters if name != "self"]
    for name in kwargs:
        if name not in known:
            raise InputError(
                f"The model '{model}' has no {name!r}. {hint(name, known)}"
            )
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise InputError(f"The model '{model}': {error}.") from None
    return {name: value for name, value in given.items() if name != "self"}
