"""Export of models for servers and other engines."""

from keras_caption.serving.ctranslate2_export import export_ctranslate2
from keras_caption.serving.export import export

__all__ = ["export", "export_ctranslate2"]
