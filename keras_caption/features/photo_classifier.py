from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from keras_caption.errors import missing_extras
from keras_caption.features.efficientnet_lite import (
    IMAGE_SIZE,
    load_efficientnet_lite,
    weights_path,
)
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.formats.torch_files import read_torch

BATCH_SIZE = 4  # images; the network is compiled for this number


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
        with missing_extras():
            import keras

        backbone, _ = load_efficientnet_lite()
        tensors = read_torch(weights_path())
        images = keras.Input((IMAGE_SIZE, IMAGE_SIZE, 3))
        features = backbone(keras.layers.Rescaling(1 / 128, -127 / 128)(images))
        pooled = keras.layers.GlobalAveragePooling2D()(features)
        head = keras.layers.Dense(len(tensors["_fc.bias"]), activation="softmax")
        self.network = keras.Model(images, head(pooled), name="photo_classifier")
        head.set_weights([tensors["_fc.weight"].T, tensors["_fc.bias"]])
        self.network.trainable = False

    def __call__(
        self, images: UInt8[np.ndarray, "batch 260 260 3"]
    ) -> Float32[np.ndarray, "batch 1000"]:
        """Computes the probabilities of the classes.

        Args:
            images: uint8 `(batch, 260, 260, 3)`, RGB.
        """
        probabilities = [
            self._probabilities(images[i : i + BATCH_SIZE])
            for i in range(0, len(images), BATCH_SIZE)
        ]
        return np.concatenate([np.zeros((0, 1000), "float32"), *probabilities])

    def _probabilities(self, images: Any) -> np.ndarray:
        filled = np.zeros((BATCH_SIZE, *images.shape[1:]), "float32")
        filled[: len(images)] = images
        return self.network.predict_on_batch(filled)[: len(images)]
