"""Attention-based image captioning and translation in Keras 3.

Importing the package registers its layers and models with Keras, as soon as that is
imported too. Parts are imported when first used.
"""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from keras_caption import apps
from keras_caption.base import old_names
from keras_caption.base.errors import InputError, missing_extras
from keras_caption.base.registration import REGISTERED, register_with_keras
from keras_caption.base.registration import register as register

if TYPE_CHECKING:  # for editors and type checkers: the names of PARTS
    from keras_caption import (  # noqa: F401
        batches,
        datasets,
        decoding,
        evaluation,
        features,
        inputs,
        layers,
        losses,
        models,
        predict,
        rewards,
        tasks,
        text,
        training,
    )
    from keras_caption.apps import bulk, convert, objects, prepare  # noqa: F401
    from keras_caption.apps import scenes as synthetic  # noqa: F401
    from keras_caption.apps import serve as serving  # noqa: F401
    from keras_caption.apps.report import papers, results, visualization  # noqa: F401
    from keras_caption.base import compilation  # noqa: F401

    __version__: str

PARTS = (
    *REGISTERED,
    "batches",
    "bulk",
    "compilation",
    "convert",
    "datasets",
    "evaluation",
    "inputs",
    "objects",
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


if not TYPE_CHECKING:  # other names are errors

    def __getattr__(name: str) -> Any:
        if name in PARTS or name in old_names.PLACE_OF:
            with missing_extras():
                place = old_names.place_of(f"keras_caption.{name}")
                return importlib.import_module(place)
        if name == "__version__":
            return importlib.metadata.version("keras-caption")
        raise AttributeError(f"module 'keras_caption' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *PARTS, "__version__"]


old_names.know_old_names()
apps.register()
register_with_keras()
