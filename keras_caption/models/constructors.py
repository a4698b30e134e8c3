"""Constructors of models: everything that follows from their signatures.

The signature of a constructor says what arguments a model has: their names, types and
default values. From it follow the check of their values, the attributes that keep them,
the model's config, and the settings of an experiment.
"""

import ast
import functools
import inspect
import operator
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import keras

from keras_caption.arguments import check, entries
from keras_caption.errors import InputError, hint
from keras_caption.models.attention import AttentionOptions, options_of
from keras_caption.models.blocks import BlockOptions

OF_KERAS = "name", "trainable", "dtype"  # arguments that `keras.Model` keeps
OPTIONS = AttentionOptions, BlockOptions
VARIABLE = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def keep_arguments(init: Callable, base_init: Callable) -> Callable:
    """Makes a constructor check its arguments, and keep them as attributes.

    An argument of a type of `OPTIONS`, such as `mechanisms: AttentionOptions`, is given
    as its options, each a keyword.
    What `**kwargs` takes are the arguments of the base class that have default values;
    with `*args`, all of its arguments. Those that `super().__init__` is given beside
    them are fixed, and no arguments of the class. `dtype` arrives as a dtype policy.

    Args:
        init: `__init__` of a class of models.
        base_init: `__init__` of the class that it inherits from.

    Returns:
        The constructor; `inspect.signature` lists all its arguments by name.
    """
    own = _parameters(init)
    named = {name: p for name, p in own.items() if p.kind not in VARIABLE}
    flat = {p.name: p for parameter in named.values() for p in _flatten(parameter)}
    inherited = passed_on(init, base_init)
    everything = {**flat, **inherited} | flat
    parameters = sorted(everything.values(), key=lambda p: p.kind)

    @functools.wraps(init)
    def construct(self, *args, **kwargs):
        given = _bind(type(self).__name__, signature, (self, *args), kwargs)
        values = {name: given.pop(name, p.default) for name, p in flat.items()}
        check_arguments(flat, values)
        # PyTorch takes layers only after the constructor of `keras.Layer`.
        layers = {n: x for n, x in values.items() if isinstance(x, keras.Layer)}
        for name, value in values.items():
            if name not in OF_KERAS and name not in layers:
                setattr(self, name, value)
        for name, parameter in named.items():
            if options := _options(parameter):
                names = options_of(parameter.annotation)
                values[name] = options(**{x: values.pop(x) for x in names})
        if "dtype" in values:
            values["dtype"] = keras.dtype_policies.get(values["dtype"])
        init(self, **values, **given)
        for name, value in layers.items():
            setattr(self, name, value)

    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    construct.__signature__ = signature = inspect.Signature([self, *parameters])
    return construct


def _parameters(init):
    parameters = inspect.signature(init, eval_str=True).parameters
    return {name: p for name, p in parameters.items() if name != "self"}


def parameters_of(model: type) -> dict[str, inspect.Parameter]:
    """All arguments of a class of models, by name."""
    return _parameters(model.__init__)


def descriptions_of(model: type) -> dict[str, str]:
    """What the arguments of a class of models are, by name.

    Returns:
        dict from name to the first sentence of its entry in the class's docstring or,
        for options, in that of their class, without its type.
    """
    described = [entries(documented) for documented in (*OPTIONS, model)]
    return functools.reduce(operator.or_, described)


def is_setting(kind: Any) -> bool:
    """Whether values of a type are text, numbers, bool or `None`."""
    origin = get_origin(kind)
    if origin is Annotated:
        return is_setting(get_args(kind)[0])
    if origin in (Union, UnionType):
        return all(map(is_setting, get_args(kind)))
    return origin is Literal or kind in (bool, int, float, str, None, NoneType)


def check_arguments(
    parameters: dict[str, inspect.Parameter], values: dict[str, Any]
) -> None:
    """Checks arguments that are text, numbers or bool.

    Args:
        parameters: dict from name to parameter, which has the type.
        values: dict from name to value.

    Raises:
        InputError: If a value is not of its type. The message names the argument.
    """
    for name, value in values.items():
        if is_setting(parameters[name].annotation):
            check(parameters[name].annotation, **{name: value})


def _options(parameter):
    """The class of `OPTIONS` that a parameter is of, or `None`."""
    kind = parameter.annotation
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return kind if kind in OPTIONS else None


def _flatten(parameter):
    """The arguments that a constructor is called with in place of one of its own."""
    if not _options(parameter):
        return [parameter]
    return [
        inspect.Parameter(
            name, parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for name, field in options_of(parameter.annotation).items()
    ]


def passed_on(init: Callable, base_init: Callable) -> dict[str, inspect.Parameter]:
    """Arguments that a constructor passes on to that of its base class.

    Args:
        init, base_init: Of `keep_arguments`.

    Returns:
        dict from name to parameter.
    """
    kinds = {parameter.kind for parameter in _parameters(init).values()}
    parameters = _parameters(base_init)
    fixed = _fixed(init, list(parameters))
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        passed = parameters
    elif inspect.Parameter.VAR_KEYWORD in kinds:
        passed = {
            name: parameter.replace(kind=parameter.KEYWORD_ONLY)
            for name, parameter in parameters.items()
            if parameter.default is not parameter.empty
        }
    else:
        passed = {}
    return {name: parameter for name, parameter in passed.items() if name not in fixed}


def _fixed(init, names):
    """Arguments of the base class that a constructor gives to it, by its source.

    Of code that has no source, as that of `exec`, none are known.
    """
    try:
        source = inspect.getsource(init)
        parsed = ast.parse(f"if True:\n{source}" if source[0].isspace() else source)
    except (OSError, SyntaxError, TypeError):
        return set()
    fixed = set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__":
            is_starred = [isinstance(value, ast.Starred) for value in node.args]
            count = (*is_starred, True).index(True)
            fixed |= {*names[:count], *(keyword.arg for keyword in node.keywords)}
    return fixed


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
