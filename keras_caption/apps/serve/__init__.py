"""Predictions of records, a server of models, and exports for other engines.

Names are imported at their first use: a client needs no TensorFlow, and a server of
exported models needs no models in Keras.
"""

from typing import TYPE_CHECKING

from keras_caption.base.registration import importing

if TYPE_CHECKING:  # for editors and type checkers
    from keras_caption.apps.serve.client import (
        AsyncClient,
        Client,
        ServerError,
    )
    from keras_caption.apps.serve.exported import ExportedPredictor
    from keras_caption.apps.serve.lite_predictors import LiteCaptioner, LiteTranslator
    from keras_caption.apps.serve.predictor import Predictor
    from keras_caption.apps.serve.server import Server
    from keras_caption.export.ctranslate2_export import export_ctranslate2
    from keras_caption.export.engine_export import (
        export_classifier,
        export_detector,
        export_engine,
    )
    from keras_caption.export.saved_model_export import export
    from keras_caption.predict import Prediction
    from keras_caption.settings.limits import Limits

MODULES = {
    "AsyncClient": ".client",
    "Client": ".client",
    "ExportedPredictor": ".exported",
    "Limits": "keras_caption.settings.limits",
    "LiteCaptioner": ".lite_predictors",
    "LiteTranslator": ".lite_predictors",
    "Prediction": "keras_caption.predict",
    "Predictor": ".predictor",
    "Server": ".server",
    "ServerError": ".client",
    "export": "keras_caption.export.saved_model_export",
    "export_ctranslate2": "keras_caption.export.ctranslate2_export",
    "export_classifier": "keras_caption.export.engine_export",
    "export_detector": "keras_caption.export.engine_export",
    "export_engine": "keras_caption.export.engine_export",
}

__all__ = [
    "AsyncClient",
    "Client",
    "ExportedPredictor",
    "Limits",
    "LiteCaptioner",
    "LiteTranslator",
    "Prediction",
    "Predictor",
    "Server",
    "ServerError",
    "export",
    "export_classifier",
    "export_ctranslate2",
    "export_detector",
    "export_engine",
]

if not TYPE_CHECKING:  # other names are errors
    __getattr__ = importing(__name__, MODULES)
