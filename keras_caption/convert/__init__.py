"""Converts checkpoints of other code to captioners."""

from keras_caption.convert.aoanet import convert_aoanet
from keras_caption.formats.checkpoints import read_tensors
from keras_caption.formats.infos import read_infos

__all__ = ["convert_aoanet", "read_infos", "read_tensors"]
