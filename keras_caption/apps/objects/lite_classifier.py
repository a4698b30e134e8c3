import pathlib

import numpy as np
from jaxtyping import Float32, UInt8

from keras_caption.base.errors import InputError
from keras_caption.formats.engine_files import open_engine, read_description


class LiteClassifier:
    """Classifies images as `PhotoClassifier` does, with a network in a file of LiteRT.

    Neither Keras nor TensorFlow is imported.

    Args:
        file: Path of the file, beside its description, see
            `keras_caption.serving.export_classifier`.

    Raises:
        InputError: If a file is damaged or holds no classifier, or the package of the
            engine is missing.
    """

    def __init__(self, file: pathlib.Path):
        try:
            self.image_size = int(read_description(file)["image_size"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{file.parent} is no classifier.") from None
        self._run = open_engine(file)

    def __call__(
        self, images: UInt8[np.ndarray, "batch size size 3"]
    ) -> Float32[np.ndarray, "batch 1000"]:
        """Computes the probabilities of the classes, see `PhotoClassifier`."""
        found = [
            self._run({"images": image[None].astype("float32")})["probabilities"]
            for image in images
        ]
        return np.concatenate(found)
