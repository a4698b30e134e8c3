"""Constructors of models: what follows from their signatures.

The constructor of a model declares its arguments: names, types and default values. Its
keywords may have the type `Unpack` of a `TypedDict`, which names arguments that it
shares with other models: fields of `OPTIONS`, and keywords of its base class. From the
signature follow the check of the values, the attributes that keep them, the model's
config, and the settings of an experiment.
"""

import dataclasses
import functools
import inspect
import operator
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, Unpack, get_args, get_origin

from keras_caption.base.arguments import check, entries
from keras_caption.base.errors import InputError, need_name
from keras_caption.base.validation import is_unicode
from keras_caption.models.attention import AttentionOptions
from keras_caption.models.blocks import BlockOptions
from keras_caption.text import Tokenizer
from keras_caption.text.tokenizer import check_strings

OF_KERAS = "name", "trainable", "dtype"  # arguments that `keras.Model` keeps
OPTIONS = AttentionOptions, BlockOptions
FIELDS = {
    field.name: inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=field.type,
    )
    for kind in OPTIONS
    for field in dataclasses.fields(kind)
}


def parameters_of(model: type) -> dict[str, inspect.Parameter]:
    """All arguments of a class of models, by name.

    These are the arguments that its constructor names, and those that it passes on to
    its base class: by `**options: Unpack[...]` the names of a `TypedDict`, by untyped
    `**kwargs` all arguments of the base class that are keywords only, by `*args` all
    others. A class that names an argument of its base again has its own default value
    and type. A subclass that fixes an argument of its base does not name it, and one
    that fixes a keyword has a `TypedDict` without it.

    Returns:
        dict from name to parameter; parameters that are positional come first.
    """
    definer, *bases = [kind for kind in model.__mro__ if "__init__" in vars(kind)]
    signature = inspect.signature(vars(definer)["__init__"], eval_str=True)
    _, *declared = signature.parameters.values()
    own: dict[str, inspect.Parameter] = {}
    passed_on: dict[str, inspect.Parameter] = {}
    for parameter in declared:
        if parameter.kind is parameter.VAR_POSITIONAL:
            passed_on |= _inherited(bases[0], are_keywords=False)
        elif get_origin(parameter.annotation) is Unpack:
            known = FIELDS | parameters_of(bases[0])
            (names,) = get_args(parameter.annotation)
            passed_on |= {
                name: known[name].replace(kind=parameter.KEYWORD_ONLY)
                for name in names.__annotations__
            }
        elif parameter.kind is parameter.VAR_KEYWORD:
            passed_on |= _inherited(bases[0], are_keywords=True)
        else:
            own[parameter.name] = parameter
    arguments = own | passed_on | own  # which has the last word
    return {p.name: p for p in sorted(arguments.values(), key=lambda p: p.kind)}


def _inherited(base, are_keywords):
    """Arguments of a base class that are keywords only, or all others."""
    return {
        name: parameter
        for name, parameter in parameters_of(base).items()
        if (parameter.kind is parameter.KEYWORD_ONLY) == are_keywords
    }


def read_arguments(
    model: type, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """All arguments of a call of a constructor with their values, checked, by name.

    Raises:
        InputError: If an argument is unknown, missing or passed twice, or has a wrong
            type.
    """
    who = kwargs.get("name") or model.__name__  # a preset's name says more
    parameters = parameters_of(model)
    for name in kwargs:
        need_name(name, parameters, f"The model '{who}' has no {name!r}")
    try:
        bound = inspect.Signature([*parameters.values()]).bind(*args, **kwargs)
    except TypeError as error:
        raise InputError(f"The model '{who}': {error}.") from None
    bound.apply_defaults()
    check_arguments(parameters, bound.arguments)
    return bound.arguments


def for_base(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a constructor that its base class has: all but the options."""
    return {name: value for name, value in keywords.items() if name not in FIELDS}


def descriptions_of(model: type) -> dict[str, str]:
    """Descriptions of the arguments of a class of models, by name.

    Returns:
        dict from name to the first sentence of the argument's entry in the docstring of
        the class, without the type. Options are described in the class of the options.
    """
    described = [entries(documented) for documented in (*OPTIONS, model)]
    return functools.reduce(operator.or_, described)


def is_setting(kind: Any) -> bool:
    """Whether a type has only values that a config file holds as one value.

    These are text, numbers, bool and `None`.
    """
    origin = get_origin(kind)
    if origin is Annotated:
        return is_setting(get_args(kind)[0])
    if origin in (Union, UnionType):
        return all(map(is_setting, get_args(kind)))
    return origin is Literal or kind in (bool, int, float, str, None, NoneType)


def check_arguments(
    parameters: Mapping[str, inspect.Parameter], values: Mapping[str, Any]
) -> None:
    """Checks arguments that are text, numbers or bool, lists of text, or tokenizers.

    Args:
        parameters: Mapping from name to parameter, whose annotation is the type.
        values: Mapping from name to value.

    Raises:
        InputError: If a value has a wrong type, or a list is empty or has a text twice.
            The message names the argument.
    """
    for name, value in values.items():
        kind = parameters[name].annotation
        if is_setting(kind):
            check(kind, **{name: value})
        elif kind == list[str]:
            different_texts(name, value)
        elif is_tokenizer(kind) and not isinstance(value, Tokenizer | None):
            raise InputError(
                f"`{name}` should be a tokenizer, of keras_caption.text. Received: "
                f"{value!r:.200}"
            )


def is_tokenizer(kind: Any) -> bool:
    """Whether a type is a class of tokenizers, or one of these and `None`."""
    kinds = get_args(kind) or (kind,)
    return any(isinstance(x, type) and issubclass(x, Tokenizer) for x in kinds)


def different_texts(name: str, values: Iterable[str]) -> list[str]:
    """The texts of an argument, such as the answers of a classifier, as a list.

    Raises:
        InputError: If there are none, one comes twice, or is no Unicode text.
    """
    texts = [*check_strings(values, f"`{name}`")]
    if not texts or not all(map(is_unicode, texts)) or len({*texts}) < len(texts):
        raise InputError(
            f"`{name}` should be different strings, at least one. Received: "
            f"{texts!r:.200}"
        )
    return texts
