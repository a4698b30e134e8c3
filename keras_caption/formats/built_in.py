"""What the package has: models, and configurations of experiments."""

import pathlib

FOLDER = pathlib.Path(__file__).parents[1] / "built_in"  # links, in a checkout


def models() -> dict[str, pathlib.Path]:
    """The files of models, by name. Those of photos read what a detector finds."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.keras"))}


def experiments() -> dict[str, pathlib.Path]:
    """The files of experiments, by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("configs/*/*.py"))}
