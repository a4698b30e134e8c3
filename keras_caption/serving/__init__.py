"""Models in use: predictions of records, and exports for servers and other engines."""

from keras_caption.serving.ctranslate2_export import export_ctranslate2
from keras_caption.serving.export import export
from keras_caption.serving.prediction import Prediction
from keras_caption.serving.predictor import Predictor

__all__ = ["Prediction", "Predictor", "export", "export_ctranslate2"]
