"""What the package has for its commands: models, and configurations of experiments."""

import pathlib

import keras_caption

FOLDER = (
    pathlib.Path(keras_caption.__file__).parent / "built_in"
)  # links, in a checkout


def experiments() -> dict[str, pathlib.Path]:
    """The files of experiments, by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("configs/*/*.py"))}
