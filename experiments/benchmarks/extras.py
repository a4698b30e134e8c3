"""Packages and megabytes that each extra installs.

    python experiments/benchmarks/extras.py

Of what is installed where it runs, with the bytecode that pip compiles: the packages
that the extra names and those that these need, all together, so that nothing is
installed anew. Those that are missing are named.
"""

import importlib.metadata
import pathlib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import keras_caption as kc

NAME = "keras-caption"


def requirements(package, extras):
    """What a package needs here, with some of its extras."""
    for text in importlib.metadata.requires(package) or []:
        needed = Requirement(text)
        marker = needed.marker
        if marker is None or any(marker.evaluate({"extra": x}) for x in {"", *extras}):
            yield canonicalize_name(needed.name), needed.extras


def packages_of(extra):
    """Names of all packages, and of those that are missing."""
    extras_of, missing, left = {}, set(), [(NAME, {extra})]
    while left:
        name, extras = left.pop()
        if name in extras_of and extras <= extras_of[name]:
            continue
        extras_of[name] = extras_of.get(name, set()) | extras
        try:
            left += requirements(name, extras_of[name])
        except importlib.metadata.PackageNotFoundError:
            missing.add(name)
    return extras_of.keys() - missing, missing


def megabytes(package):
    if package == NAME:  # its files may be in a checkout
        [folder] = kc.__path__
        files = pathlib.Path(folder).rglob("*")
    else:
        files = (file.locate() for file in importlib.metadata.files(package))
    return (
        sum(path.stat().st_size for path in map(pathlib.Path, files) if path.is_file())
        / 1e6
    )


def main():
    known = importlib.metadata.metadata(NAME).get_all("Provides-Extra")
    rows = []
    for extra in ("", *sorted(known)):
        packages, missing = packages_of(extra)
        size = sum(map(megabytes, packages))
        row = (f"`{extra}`" if extra else "none", str(len(packages)), f"{size:,.0f}")
        rows.append((*row, ", ".join(sorted(missing))))
    print(kc.evaluation.markdown_table(("extra", "packages", "MB", "missing"), rows))


if __name__ == "__main__":
    main()
