"""Keras knows the classes of saved models as soon as it is imported."""

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from keras_caption.base.errors import missing_extras

# What saved models hold is defined in these, and in apps that are given as "saved":
# Keras finds it in its registry only.
REGISTERED = ("decoding", "features", "layers", "losses", "models", "text", "training")

Class = TypeVar("Class", bound=type)
_waiting: list[type] | None = []  # classes, until Keras is imported


def serializable(kind: Class) -> Class:
    """Registers a class of saved models with Keras, a decorator.

    It does so as soon as Keras is imported, so that the class itself needs no Keras.
    """
    if _waiting is None:
        import keras

        keras.saving.register_keras_serializable("keras_caption")(kind)
    else:
        _waiting.append(kind)
    return kind


def register() -> None:
    """Registers the classes of saved models with Keras, which it imports."""
    global _waiting
    with missing_extras():
        parts = [importlib.import_module(f"keras_caption.{x}") for x in REGISTERED]
        for part in [*parts, *Registry("saved").values()]:
            for public in part.__all__:  # which may be imported when they are used
                getattr(part, public)
    kinds, _waiting = _waiting or [], None
    for kind in kinds:
        serializable(kind)


# What apps give to the core, which imports no app: for each part, or registry of it,
# names and where their values are, `"module"` or `"module:attribute"`.
_GIVEN: dict[str, dict[str, str]] = {}


def give(receiver: str, places: Mapping[str, str]) -> None:
    """Gives values to a part of the library, which imports them at their first use.

    Args:
        receiver: str, name of a package, which then has the values as attributes, or of
            a `Registry`.
        places: Mapping from the name of a value to its module, or, as
            `"module:attribute"`, to its place in a module.
    """
    _GIVEN.setdefault(receiver, {}).update(places)


def given(receiver: str, name: str) -> Any:
    """A value that was given to a part of the library, see `give`."""
    module, _, attribute = _GIVEN[receiver][name].partition(":")
    with missing_extras():
        value = importlib.import_module(module)
    return getattr(value, attribute) if attribute else value


class Registry(MutableMapping[str, Any]):
    """Values by name, those that apps give among them, see `give`.

    Args:
        name: str, name of the registry.
        values: Mapping of the values of its own.
    """

    def __init__(self, name: str, values: Mapping[str, Any] | None = None):
        self._given = _GIVEN.setdefault(name, {})
        self._name = name
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> Any:
        if name not in self._values and name in self._given:
            self._values[name] = given(self._name, name)
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        if self._given.pop(name, None) is None or name in self._values:
            del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._given, **self._values})

    def __len__(self) -> int:
        return len({**self._given, **self._values})


def importing(
    package: str, modules: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """The `__getattr__` of a package that imports names when they are first used.

    Args:
        package: str, name of the package.
        modules: Mapping from each name to its module, absolute or relative. The
            package has what it was given too, see `give`.
    """
    own = modules or {}

    def get(name):
        if name in own:
            with missing_extras():
                module = importlib.import_module(own[name], package)
            value = getattr(module, name)
        elif name in _GIVEN.get(package, {}):
            value = given(package, name)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return get


def register_with_keras() -> None:
    """Registers the classes of saved models as soon as Keras is imported.

    So whoever imports Keras, before or after this package, loads models; and what needs
    no Keras, such as the client of a server, does not wait for it.
    """
    if sys.modules.get("keras"):
        register()
    else:
        sys.meta_path.insert(0, Watcher())


class Watcher(importlib.abc.MetaPathFinder):
    """Registers once a module is imported that is, or has imported, Keras.

    That is Keras itself, or a part of this package that imports it: then the others
    are imported only after that part is whole.
    """

    def __init__(self):
        self.is_waiting = True

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        is_part = name.startswith("keras_caption.")
        if not self.is_waiting or not (is_part or name == "keras"):
            return None
        with self.not_waiting():
            spec = importlib.util.find_spec(name)
        if spec is not None:
            spec.loader = Loader(spec.loader, self)
        return spec

    @contextlib.contextmanager
    def not_waiting(self) -> Iterator[None]:
        """Lets a block import without looking at it."""
        self.is_waiting = False
        try:
            yield
        finally:
            self.is_waiting = True

    def look(self) -> None:
        """Registers if Keras is imported by now."""
        if sys.modules.get("keras") and self in sys.meta_path:
            sys.meta_path.remove(self)
            register()


class Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, and tells a `Watcher`."""

    def __init__(self, loader: Any, watcher: Watcher):
        self.loader = loader
        self.watcher = watcher

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self.loader
        try:
            with self.watcher.not_waiting():
                self.loader.exec_module(module)
        except ImportError:  # of a part without its extra: Keras is imported by now
            if module.__name__ != "keras":
                self.watcher.look()
            raise
        self.watcher.look()
