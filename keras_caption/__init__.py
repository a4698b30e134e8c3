"""Attention-based image captioning in Keras 3.

Importing the package registers its layers and models with Keras. Modules that need
TensorFlow, or packages beyond Keras, are imported when first used.
"""

import importlib

from keras_caption import (
    decoding,
    features,
    inputs,
    layers,
    models,
    rewards,
    text,
    training,
)
from keras_caption.errors import InputError

LAZY = ("convert", "data", "evaluation", "serving", "visualization")

__all__ = [
    "InputError",
    "decoding",
    "features",
    "inputs",
    "layers",
    "models",
    "rewards",
    "text",
    "training",
    *LAZY,
]


def __getattr__(name):
    if name in LAZY:
        return importlib.import_module(f"keras_caption.{name}")
    raise AttributeError(f"module 'keras_caption' has no attribute {name!r}")
