"""Writes the signatures that type checkers and editors cannot see: `make format`.

Constructors of models have the options of `AttentionOptions`, of `BlockOptions` and of
their base classes, each a keyword, as they are when the library is imported. A checker
reads files only. It finds these constructors in a `.pyi` file beside each module, the
models of `kc.models.create` in that of its module, and the options of decoding, which
functions take as `**options`, in a `TypedDict`. What `run --help` says of the built-in
experiments is in a file too, `keras_caption/settings/catalogue.json`.
"""

import ast
import inspect
import json
import pathlib
import subprocess
import sys
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import keras_caption as kc
from keras_caption.commands.configuration import describe, make_config
from keras_caption.models.constructors import passed_on
from keras_caption.models.presets import PRESETS
from keras_caption.models.task_model import TaskModel
from keras_caption.settings.catalogue import FILE
from keras_caption.settings.decoding import types

PROJECT = pathlib.Path(__file__).resolve().parents[1]
WRITTEN = "written by docs/signatures.py"
MODULES = {  # of types that are named
    **dict.fromkeys(("Any", "Literal", "TypedDict", "Unpack", "overload"), "typing"),
    "Sequence": "collections.abc",
}
VARIABLE = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def main():
    for path, text in files().items():
        path.write_text(text)


def files():
    """The content of each file, by its path."""
    public = [
        getattr(part, name) for part in (kc.layers, kc.models) for name in part.__all__
    ]
    made = {
        path_of(sys.modules[kind.__module__]): stub_of_class(kind)
        for kind in filter(passes_arguments_on, public)
    }
    presets = sys.modules["keras_caption.models.presets"]
    made[path_of(presets)] = stub_of(presets, overloads_of_create)
    made[PROJECT / "keras_caption" / "settings" / "options.py"] = options()
    made = {path: formatted(path, text) for path, text in sorted(made.items())}
    return made | {FILE: catalogue()}


def path_of(module):
    return pathlib.Path(module.__file__).with_suffix(".pyi")


def formatted(path, text):
    for arguments in (["check", "--fix", "--select=I,F401", "-q"], ["format"]):
        command = [sys.executable, "-m", "ruff", *arguments, "-"]
        done = subprocess.run(
            [*command, f"--stdin-filename={path}"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=PROJECT,
        )
        text = done.stdout
    return text


# === Built-in experiments ===


def catalogue():
    """The built-in experiments, for `keras_caption.settings.catalogue`.

    They are JSON, a list of kinds of models, whose experiments have the same names. A
    model is described by the values that differ from those of the first one.
    """
    kinds = {}
    for name in kc.models.presets():
        described = describe(*make_config(None, {"model.name": name}))
        values = {value: (str(x), text) for value, (x, text) in described.items()}
        kind = kinds.setdefault(tuple(values), {"values": values, "models": {}})
        kind["models"][name] = {
            value: entry
            for value, entry in values.items()
            if entry != kind["values"][value]
        }
    return json.dumps([*kinds.values()], indent=1) + "\n"


# === Constructors ===


def passes_arguments_on(kind):
    """Whether a class has arguments that its source does not name."""
    if not inspect.isclass(kind) or "__init__" not in vars(kind):
        return False
    parameters = inspect.signature(inspect.unwrap(kind.__init__)).parameters.values()
    return any(
        parameter.kind in VARIABLE and parameter.annotation is Any
        for parameter in parameters
    )


def parameters_of(kind):
    """All arguments of a class, a list of parameters."""
    signature = inspect.signature(kind.__init__, eval_str=True)
    parameters = list(signature.parameters.values())[1:]
    if issubclass(kind, TaskModel):
        return parameters
    base = next(x for x in kind.__mro__[1:] if x.__module__.startswith("keras_caption"))
    base = next(x for x in base.__mro__ if "__init__" in vars(x))
    own = [x for x in parameters if x.kind not in VARIABLE]
    passed = passed_on(kind.__init__, base.__init__)
    inherited = [x for name, x in passed.items() if name not in signature.parameters]
    rest = inspect.signature(base.__init__, eval_str=True).parameters["kwargs"]
    return [*sorted([*own, *inherited], key=lambda x: x.kind), rest]


def stub_of_class(kind):
    """The stub of a module that defines a class."""

    def constructor(node):
        lines = [f"{name}: Any" for name in sorted(assigned_in(node))]
        arguments = texts_of(parameters_of(kind))
        lines.append(f"def __init__(self, {arguments}) -> None: ...")
        return ast.parse("\n".join(lines)).body

    def members(node):
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                yield from constructor(node)
            elif isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                yield without_body(item)
            elif isinstance(item, ast.AnnAssign):
                yield item

    def replace(node):
        if not isinstance(node, ast.ClassDef) or node.name != kind.__name__:
            return None
        bases = ", ".join(map(ast.unparse, node.bases))
        replaced = ast.parse(f"class {node.name}({bases}): ...").body
        replaced[0].body = list(members(node))
        return replaced

    return stub_of(sys.modules[kind.__module__], replace)


def assigned_in(node):
    """Attributes that the methods of a class assign, by name."""
    return {
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and ast.unparse(target.value) == "self"
    }


# === `create` ===


def overloads_of_create(node):
    """`create`, by the class of the model that a name stands for."""
    if not isinstance(node, ast.FunctionDef) or node.name != "create":
        return None
    classes = {}
    for name, preset in PRESETS.items():
        classes.setdefault(preset.model, []).append(name)
    lines = []
    for model, names in classes.items():
        keywords = [  # whose default values are the preset's
            parameter.replace(
                kind=parameter.KEYWORD_ONLY,
                default=parameter.empty
                if parameter.default is parameter.empty
                else ...,
            )
            for parameter in parameters_of(model)
            if parameter.name != "name"
        ]
        lines.append(
            f"@overload\ndef create(name: {text_of(Literal[tuple(names)])}, "
            f"{texts_of(keywords)}) -> {text_of(model)}: ...\n"
        )
    lines.append("@overload\ndef create(name: str, **arguments: Any) -> Any: ...\n")
    return ast.parse("".join(lines)).body


# === Options ===


def options():
    fields = "".join(f"    {name}: {text_of(kind)}\n" for name, kind in types().items())
    declared = f"class DecodingOptions(TypedDict, total=False):\n{fields}"
    return (
        f'"""The options of decoding for type checkers, {WRITTEN}."""\n'
        f"{imports_of(declared)}\n\n\n{declared}"
    )


# === Stubs ===


def stub_of(module, replace):
    """The stub of a module: its source without bodies and docstrings.

    Args:
        module: Module.
        replace: Function of a node of its source, that returns a list of nodes in
            place of it or `None`.
    """
    body, imports = [], []
    for node in ast.parse(pathlib.Path(module.__file__).read_text()).body:
        if (replaced := replace(node)) is not None:
            body += replaced
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            body.append(without_body(node))
        elif isinstance(node, ast.ClassDef):
            body.append(without_docstring(node))
        elif isinstance(node, ast.Assign):
            value = getattr(module, node.targets[0].id)
            body += ast.parse(f"{node.targets[0].id}: {type(value).__name__}").body
    text = "\n\n".join(map(ast.unparse, body))
    bound = {alias.asname or alias.name for node in imports for alias in node.names}
    own = "\n".join([*map(ast.unparse, imports), imports_of(text, bound)])
    return f"# {WRITTEN.capitalize()}.\n{own}\n{text}\n"


def without_body(function):
    kept = [x for x in function.decorator_list if isinstance(x, ast.Name)]
    bare = ast.FunctionDef(
        function.name, function.args, [ast.Expr(ast.Constant(...))], kept
    )
    bare.returns = function.returns
    return ast.fix_missing_locations(bare)


def without_docstring(node):
    node.body = [x for x in node.body if not isinstance(x, ast.Expr)]
    return node


def texts_of(parameters):
    """The text of parameters, separated by commas."""
    texts, has_star = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            texts.append("*")
            has_star = True
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        text = f"{star}{parameter.name}: {text_of(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            is_plain = isinstance(parameter.default, str | int | float | NoneType)
            text += f" = {parameter.default!r}" if is_plain else " = ..."
        texts.append(text)
    return ", ".join(texts)


def text_of(kind):
    """The text of a type, without what pydantic validates."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return text_of(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(text_of, arguments)))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is tuple and arguments[1:] == (...,):  # or a list, which pydantic turns
        return f"Sequence[{text_of(arguments[0])}]"
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(text_of, arguments))}]"
    if kind is NoneType:
        return "None"
    if kind in (Any, inspect.Parameter.empty):
        return "Any"
    if kind.__module__.startswith("keras."):
        return f"keras.{kind.__name__}"
    MODULES[kind.__name__] = kind.__module__
    return kind.__name__


def imports_of(text, bound=()):
    """Imports of the types that a text names, beside names that are bound."""
    names = {
        node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)
    }
    return "\n".join(
        f"from {MODULES[name]} import {name}"
        for name in names & MODULES.keys() - {*bound}
        if MODULES[name] != "builtins"
    )


if __name__ == "__main__":
    main()
