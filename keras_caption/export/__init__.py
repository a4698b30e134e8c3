"""Models for TensorFlow Serving and for other engines, see `keras_caption.serving`."""
