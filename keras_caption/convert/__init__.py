"""Converts checkpoints of other code to models."""

from keras_caption.convert.aoanet import convert_aoanet
from keras_caption.convert.mcan import convert_mcan
from keras_caption.formats.checkpoints import read_tensors
from keras_caption.formats.infos import read_infos

__all__ = ["convert_aoanet", "convert_mcan", "read_infos", "read_tensors"]
