"""Keras knows the classes of saved models as soon as it is imported."""

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from keras_caption.errors import missing_extras

# What saved models hold is defined in these: Keras finds it in its registry only.
REGISTERED = (
    *("decoding", "features", "layers", "losses", "models", "objects", "text"),
    "training",
)

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
        for name in REGISTERED:
            part = importlib.import_module(f"keras_caption.{name}")
            for public in part.__all__:  # which may be imported when they are used
                getattr(part, public)
    kinds, _waiting = _waiting or [], None
    for kind in kinds:
        serializable(kind)


def importing(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that imports names when they are first used.

    Args:
        package: str, name of the package.
        modules: Mapping from each name to its module, absolute or relative.
    """

    def get(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with missing_extras():
            module = importlib.import_module(modules[name], package)
        value = getattr(module, name)
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
