"""Names of parts, and of modules, that stand elsewhere now."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from typing import Any

PACKAGE = "keras_caption"

# From a name that users know, `keras_caption.NAME`, to its place in the package.
PLACE_OF = {
    **{name: f"base.{name}" for name in ("arguments", "atomic", "caches")},
    **{name: f"base.{name}" for name in ("compilation", "errors", "keras_overrides")},
    **{name: f"base.{name}" for name in ("progress", "registration", "replicas")},
    "validation": "base.validation",
    "bulk": "apps.bulk",
    "convert": "apps.convert",
    "demo": "apps.serve.demo",
    "objects": "apps.objects",
    "papers": "apps.report.papers",
    "prepare": "apps.prepare",
    "results": "apps.report.results",
    "serving": "apps.serve",
    "synthetic": "apps.scenes",
    "visualization": "apps.report.visualization",
}


def place_of(name: str) -> str:
    """The place of a module of the package, by any of its names.

    Args:
        name: str, name of a module, `keras_caption.` included.
    """
    package, _, rest = name.partition(".")
    first, dot, inner = rest.partition(".")
    if package != PACKAGE or first not in PLACE_OF:
        return name
    return f"{PACKAGE}.{PLACE_OF[first]}{dot}{inner}"


class OldNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules by their old names: they are the same modules."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if place_of(name) == name:
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        module = importlib.import_module(place_of(spec.name))
        spec.loader_state = module.__spec__, module.__loader__
        return module

    def exec_module(self, module: Any) -> None:
        # The import system has given it the specification of the old name.
        module.__spec__, module.__loader__ = module.__spec__.loader_state


def know_old_names() -> None:
    """Lets modules be imported by their old names."""
    sys.meta_path.insert(0, OldNames())
