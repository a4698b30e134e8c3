"""Predictions of records, a server of models, and exports for other engines.

Names are imported at their first use: a client needs no TensorFlow, and a server of
exported models needs no models in Keras.
"""

import importlib
from typing import TYPE_CHECKING, Any

from keras_caption.errors import missing_extras

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.predict import Prediction  # noqa: F401
    from keras_caption.serving.client import (  # noqa: F401
        AsyncClient,
        Client,
        ServerError,
    )
    from keras_caption.serving.ctranslate2_export import export_ctranslate2  # noqa: F401
    from keras_caption.serving.engine_export import export_engine  # noqa: F401
    from keras_caption.serving.exported import ExportedPredictor  # noqa: F401
    from keras_caption.serving.limits import Limits  # noqa: F401
    from keras_caption.serving.predictor import Predictor  # noqa: F401
    from keras_caption.serving.saved_model_export import export  # noqa: F401
    from keras_caption.serving.server import Server  # noqa: F401

MODULES = {
    "AsyncClient": ".client",
    "Client": ".client",
    "ExportedPredictor": ".exported",
    "Limits": ".limits",
    "Prediction": "keras_caption.predict",
    "Predictor": ".predictor",
    "Server": ".server",
    "ServerError": ".client",
    "export": ".saved_model_export",
    "export_ctranslate2": ".ctranslate2_export",
    "export_engine": ".engine_export",
}

__all__ = [*MODULES]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with missing_extras():
        module = importlib.import_module(MODULES[name], __name__)
    globals()[name] = getattr(module, name)
    return globals()[name]
