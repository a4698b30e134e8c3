"""Export of models as SavedModels that answer with sentences."""

from keras_caption.serving.export import export

__all__ = ["export"]
