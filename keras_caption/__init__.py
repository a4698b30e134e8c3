"""Attention-based image captioning and translation in Keras 3.

Importing the package registers its layers and models with Keras, as soon as that is
imported too. Parts are imported when first used.
"""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from keras_caption import apps
from keras_caption.errors import InputError, missing_extras
from keras_caption.registration import REGISTERED, register_with_keras
from keras_caption.registration import register as register

if TYPE_CHECKING:  # for editors and type checkers: the names of PARTS
    from keras_caption import (  # noqa: F401
        batches,
        bulk,
        compilation,
        convert,
        datasets,
        decoding,
        evaluation,
        features,
        inputs,
        layers,
        losses,
        models,
        objects,
        papers,
        predict,
        prepare,
        results,
        rewards,
        serving,
        synthetic,
        tasks,
        text,
        training,
        visualization,
    )

PARTS = (
    *REGISTERED,
    "batches",
    "bulk",
    "compilation",
    "convert",
    "datasets",
    "evaluation",
    "inputs",
    "papers",
    "predict",
    "prepare",
    "results",
    "rewards",
    "serving",
    "synthetic",
    "tasks",
    "visualization",
)

__all__ = ["InputError", *PARTS]


def __getattr__(name: str) -> Any:
    if name in PARTS:
        with missing_extras():
            return importlib.import_module(f"keras_caption.{name}")
    if name == "__version__":
        return importlib.metadata.version("keras-caption")
    raise AttributeError(f"module 'keras_caption' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *PARTS, "__version__"]


apps.register()
register_with_keras()
