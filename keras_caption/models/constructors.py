"""Constructors of models: everything that follows from their signatures.

The signature of a constructor declares the arguments of a model: their names, types and
default values. From the signature follow the check of the values, the attributes that
keep them, the model's config, and the settings of an experiment.
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

    - An argument whose type is in `OPTIONS`, such as `mechanisms: AttentionOptions`, is
      replaced by its options, each a keyword.
    - `**kwargs` accepts the arguments of the base class that have default values;
      `*args` accepts all arguments of the base class.
    - An argument that the constructor itself passes to `super().__init__` is fixed: it
      is no argument of the class.
    - `dtype` is passed on as a dtype policy.

    Args:
        init: `__init__` of a class of models.
        base_init: `__init__` of the class that it inherits from.

    Returns:
        The constructor; `inspect.signature` lists all its arguments by name.
    """
    declared = _parameters(init)
    named = {name: p for name, p in declared.items() if p.kind not in VARIABLE}
    flat = {p.name: p for parameter in named.values() for p in _flatten(parameter)}
    inherited = passed_on(init, base_init)
    # A class that declares an argument again has its own default value and type.
    everything = {**flat, **inherited} | flat
    # Positional parameters come before keywords, as `inspect.Signature` needs them.
    parameters = sorted(everything.values(), key=lambda p: p.kind)

    @functools.wraps(init)
    def construct(self, *args, **kwargs):
        passed = _bind(type(self).__name__, signature, (self, *args), kwargs)
        values = {name: passed.pop(name, p.default) for name, p in flat.items()}
        check_arguments(flat, values)
        # The PyTorch backend accepts sublayers as attributes only after the constructor
        # of `keras.Layer`.
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
        init(self, **values, **passed)
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
    parameters: dict[str, inspect.Parameter], values: dict[str, Any]
) -> None:
    """Checks arguments that are text, numbers or bool.

    Args:
        parameters: dict from name to parameter, whose annotation is the type.
        values: dict from name to value.

    Raises:
        InputError: If a value has a wrong type. The message names the argument.
    """
    for name, value in values.items():
        if is_setting(parameters[name].annotation):
            check(parameters[name].annotation, **{name: value})


def _options(parameter):
    """The class in `OPTIONS` that is the type of a parameter, or `None`."""
    kind = parameter.annotation
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return kind if kind in OPTIONS else None


def _flatten(parameter):
    """The keywords that replace a parameter of options; else the parameter itself."""
    if not _options(parameter):
        return [parameter]
    return [
        inspect.Parameter(
            name, parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for name, field in options_of(parameter.annotation).items()
    ]


def passed_on(init: Callable, base_init: Callable) -> dict[str, inspect.Parameter]:
    """Arguments that a constructor accepts and passes on to its base class.

    Args:
        init, base_init: As in `keep_arguments`.

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
    """Arguments that the source of a constructor passes to `super().__init__`.

    Code without a source file, such as that of `exec`, has no fixed arguments.
    """
    try:
        source = inspect.getsource(init)
        # The source of a method is indented, which `ast.parse` accepts in a block only.
        parsed = ast.parse(f"if True:\n{source}" if source[0].isspace() else source)
    except (OSError, SyntaxError, TypeError):
        return set()
    fixed = set()
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super().__init__":
            # Positional arguments before `*args` are fixed; `*args` are passed on.
            is_starred = [isinstance(value, ast.Starred) for value in node.args]
            count = (*is_starred, True).index(True)
            fixed |= {*names[:count], *(keyword.arg for keyword in node.keywords)}
    return fixed


def _bind(model, signature, args, kwargs):
    """Arguments of a call of a constructor, by name.

    Raises:
        InputError: If an argument is unknown, missing or passed twice.
    """
    model = kwargs.get("name") or model  # the name of a preset says more than the class
    known = [name for name in signature.parameters if name != "self"]
    for name in kwargs:
        if name not in known:
            raise InputError(
                f"The model '{model}' has no {name!r}. {hint(name, known)}"
            )
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise InputError(f"The model '{model}': {error}.") from None
    return {name: value for name, value in bound.items() if name != "self"}
