"""What the package has: models, and configurations of experiments."""

import pathlib

from keras_caption.base.errors import need_name

FOLDER = pathlib.Path(__file__).parents[1] / "built_in"  # links, in a checkout


def models() -> dict[str, pathlib.Path]:
    """The files of models, by name. Those of photos read what a detector finds."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.keras"))}


def engines() -> dict[tuple[pathlib.Path, str], pathlib.Path]:
    """Folders of models for an engine, by the model's real file and the engine."""
    files = models()
    return {
        (files[name].resolve(), engine): folder
        for folder in FOLDER.glob("*_*")
        for name, _, engine in [folder.name.rpartition("_")]
        if folder.is_dir() and name in files
    }


def experiments() -> dict[str, pathlib.Path]:
    """The files of experiments, by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("configs/*/*.py"))}


def find_file(path: str) -> str:
    """The file of an experiment: the path itself, or the built-in one of that name."""
    if pathlib.Path(path).suffix or pathlib.Path(path).exists():
        return path
    named = experiments()
    need_name(path, named, f"There is no built-in experiment {path!r}")
    return str(named[path])
