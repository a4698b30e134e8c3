"""From the checkpoints of other code to captioners of this one."""

from keras_caption.convert.aoanet import convert_aoanet
from keras_caption.convert.files import read_infos, read_tensors

__all__ = ["convert_aoanet", "read_infos", "read_tensors"]
