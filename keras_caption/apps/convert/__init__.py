"""Converts checkpoints of other code to models."""

from keras_caption.apps.convert.aoanet import convert_aoanet
from keras_caption.apps.convert.joeynmt import convert_joeynmt
from keras_caption.apps.convert.luo import training_options
from keras_caption.apps.convert.luo_transformer import convert_luo_transformer
from keras_caption.apps.convert.luo_updown import convert_luo_updown
from keras_caption.apps.convert.marian import convert_marian
from keras_caption.apps.convert.mcan import convert_mcan
from keras_caption.apps.convert.nanodet import convert_nanodet
from keras_caption.apps.objects.keras_yolox import convert_yolox
from keras_caption.formats.checkpoints import read_tensors
from keras_caption.formats.infos import read_infos
from keras_caption.formats.joeynmt import read_joeynmt
from keras_caption.formats.marian import read_marian
from keras_caption.formats.ncnn_files import read_ncnn

__all__ = [
    "convert_aoanet",
    "convert_joeynmt",
    "convert_luo_transformer",
    "convert_luo_updown",
    "convert_marian",
    "convert_mcan",
    "convert_nanodet",
    "convert_yolox",
    "read_infos",
    "read_joeynmt",
    "read_marian",
    "read_ncnn",
    "read_tensors",
    "training_options",
]
