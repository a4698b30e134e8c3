import itertools
import pathlib

import keras
import numpy as np
from jaxtyping import Float32, UInt8

from keras_caption.apps.objects.imagenet_names import CLASSES
from keras_caption.base.compilation import compile_function
from keras_caption.base.errors import InputError
from keras_caption.features.efficientnet_lite import (
    ARCHITECTURE,
    IMAGE_SIZE,
    load_efficientnet_lite,
    weights_path,
)
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.formats.torch_files import read_torch

FEATURES = ARCHITECTURE["num_features"]
COMPILED_SIZE = 4  # images; the network is compiled for this number
FEW = 16  # images, at most, of a first call that runs eagerly


class PhotoClassifier:
    """Classifies images into ImageNet's 1,000 classes by EfficientNet-Lite2.

    The weights are those of a Python package, of the extra `backbones`. They are never
    trained here.

    Attributes:
        image_size: int, height and width of an image.
        network: `keras.Model`, from `(batch, 260, 260, 3)`, 0 to 255, to probabilities.

    Raises:
        InputError: If the package is not installed, or its file is damaged.
    """

    image_size = IMAGE_SIZE

    @keras_defaults()
    def __init__(self):
        backbone, _ = load_efficientnet_lite()
        weight, bias = head_of(weights_path())
        images = keras.Input((IMAGE_SIZE, IMAGE_SIZE, 3))
        features = backbone(keras.layers.Rescaling(1 / 128, -127 / 128)(images))
        pooled = keras.layers.GlobalAveragePooling2D()(features)
        head = keras.layers.Dense(CLASSES, activation="softmax")
        self.network = keras.Model(images, head(pooled), name="photo_classifier")
        head.set_weights([weight.T, bias])
        self.network.trainable = False
        self._compiled = compile_function(self.network, self.network.variables)
        is_eager = keras.backend.backend() == "tensorflow"
        self._is_first = itertools.chain([is_eager], itertools.repeat(False))

    def __call__(
        self, images: UInt8[np.ndarray, "batch 260 260 3"]
    ) -> Float32[np.ndarray, "batch 1000"]:
        """Computes the probabilities of the classes.

        Args:
            images: uint8 `(batch, 260, 260, 3)`, RGB.
        """
        # A network takes longer to trace than to run for one photo.
        if next(self._is_first) and len(images) <= FEW:
            return np.asarray(self.network(images.astype("float32"), training=False))
        probabilities = np.zeros((len(images), CLASSES), "float32")
        for i in range(0, len(images), COMPILED_SIZE):
            batch = images[i : i + COMPILED_SIZE]
            filled = np.zeros((COMPILED_SIZE, *images.shape[1:]), "float32")
            filled[: len(batch)] = batch
            probabilities[i : i + len(batch)] = self._compiled(filled)[: len(batch)]
        return probabilities


def head_of(path: pathlib.Path) -> list[np.ndarray]:
    """The weights of the last layer, float32 `(1000, 1280)` and `(1000,)`.

    Raises:
        InputError: If the file has no such weights.
    """
    tensors = read_torch(path)
    shapes = {"_fc.weight": (CLASSES, FEATURES), "_fc.bias": (CLASSES,)}
    for name, shape in shapes.items():
        if name not in tensors or tensors[name].shape != shape:
            raise InputError(f"{path} should hold {name} of shape {shape}.")
    return [tensors[name] for name in shapes]
