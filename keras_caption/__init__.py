"""Attention-based image captioning and translation in Keras 3.

Importing the package registers its layers and models with Keras. Modules that need
TensorFlow, or packages beyond Keras, are imported when first used.
"""

import importlib
import importlib.metadata
import os
from typing import TYPE_CHECKING, Any

# Which TensorFlow reads when it is imported: without its remarks and warnings, unless
# the user has set it.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from keras_caption import (
    decoding,
    features,
    inputs,
    layers,
    models,
    rewards,
    text,
    training,
)
from keras_caption.errors import InputError, missing_extras

if TYPE_CHECKING:  # for editors and type checkers: the names of LAZY
    from keras_caption import (  # noqa: F401
        batches,
        convert,
        datasets,
        evaluation,
        prepare,
        serving,
        synthetic,
        tasks,
        visualization,
    )

LAZY = (
    "batches",
    "convert",
    "datasets",
    "evaluation",
    "prepare",
    "serving",
    "synthetic",
    "tasks",
    "visualization",
)

__all__ = [
    "InputError",
    "decoding",
    "features",
    "inputs",
    "layers",
    "models",
    "rewards",
    "text",
    "training",
    *LAZY,
]


def __getattr__(name: str) -> Any:
    if name in LAZY:
        with missing_extras():
            return importlib.import_module(f"keras_caption.{name}")
    if name == "__version__":
        return importlib.metadata.version("keras-caption")
    raise AttributeError(f"module 'keras_caption' has no attribute {name!r}")
