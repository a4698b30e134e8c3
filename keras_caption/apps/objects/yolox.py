from typing import Any

import keras
import numpy as np
from jaxtyping import Float32
from keras import ops

from keras_caption.apps.objects.cells import DEVIATION, MEAN, cells_of
from keras_caption.apps.objects.lite_yolox import OVERLAP, STRIDES, VALUES
from keras_caption.apps.objects.object_detector import (
    Detected,
    Images,
    ObjectDetector,
    with_nan,
)
from keras_caption.apps.objects.suppression import Suppression
from keras_caption.base.arguments import Tensor
from keras_caption.base.errors import InputError, missing_extras

MULTIPLE = 32  # the size of an image is a multiple of these pixels
# Boxes in pixels, and scores of the categories, of all cells.
Decoded = tuple[Float32[Tensor, "batch cells 4"], Float32[Tensor, "batch cells 80"]]


@keras.saving.register_keras_serializable("keras_caption")
class Yolox(ObjectDetector):
    """Detects objects by a YOLOX network.

    The network reads photos normalized by the colours of ImageNet. It has grids with
    strides of 8, 16 and 32 pixels. Each cell, row by row, predicts one box by 85
    values: the centre relative to the cell, and the logarithms of width and height, in
    units of the stride; the probability of an object; and the probabilities of the 80
    categories. The score of a box is the product of both probabilities, for the best
    category. If boxes of one category overlap by more than 0.65, only the box with the
    best score remains.

    Args:
        network: `keras.Model` from float `(batch, height, width, 3)` to float
            `(batch, cells, 85)`.
        image_size: int, a multiple of 32. Defaults to 416.
        confidence, max_objects, name: As in `ObjectDetector`.

    Raises:
        InputError: If the network has another input or output.

    Reference:
        Ge, Liu, Wang, Li, Sun, "YOLOX: Exceeding YOLO Series in 2021",
        arXiv:2107.08430.
    """

    kind = "YOLOX"
    strides_of_grids: tuple[int, ...] = STRIDES  # whose cells predict objects
    values = VALUES  # of a cell
    proportions = True  # of photos are kept
    overlap = OVERLAP  # intersection over union of two objects of a category, at most

    def __init__(
        self,
        network: keras.Model,
        image_size: int = 416,
        confidence: float = 0.3,
        max_objects: int = 36,
        name: str | None = None,
        **kwargs: Any,
    ):
        name = name or type(self).__name__.lower()
        super().__init__(
            image_size, self.proportions, confidence, max_objects, name, **kwargs
        )
        self.network = network
        self.suppression = Suppression(self.overlap, by_category=True)
        self.cells, self.strides = cells_of(image_size, self.strides_of_grids)
        self._check_network()
        self.trainable = False

    def _check_network(self):
        cells, values = len(self.cells), self.values
        image = keras.KerasTensor((None, self.image_size, self.image_size, 3))
        try:
            shape = self.network.compute_output_spec(image).shape[1:]
        except Exception:  # a network with other inputs may fail in any layer
            shape = None
        if self.image_size % MULTIPLE or shape != (cells, values):
            received = "does not" if shape is None else f"turns them into {shape}"
            raise InputError(
                f"A {self.kind} network should turn {self.image_size} x "
                f"{self.image_size} pixels into {cells:,} x {values} values. Received: "
                f"{self.network.name}, which {received}"
            )

    def detect(self, images: Images) -> Detected:
        with missing_extras():  # Keras has no suppression per category
            import tensorflow as tf

        predictions = self._predict(images)
        boxes, scores, categories, _ = tf.image.combined_non_max_suppression(
            ops.expand_dims(predictions[0], 2),  # one box for all categories
            predictions[1],
            max_output_size_per_class=self.max_objects,
            max_total_size=self.max_objects,
            iou_threshold=self.overlap,
            score_threshold=self.confidence,
            clip_boxes=False,
        )
        scores = with_nan(scores, predictions)
        return boxes / self.image_size, scores, ops.cast(categories, "int32")

    def candidates(self, images: Images) -> Detected:
        boxes, scores = self._predict(images)
        best, categories = ops.top_k(scores, 1)  # LiteRT lacks `argmax` of Keras
        return boxes, best[..., 0], categories[..., 0]

    def _predict(self, images):
        """Predicts boxes in pixels, and the score of the best category of each cell."""
        images = (ops.cast(images, "float32") - MEAN) / DEVIATION
        boxes, scores = self.predict_cells(images)
        # A cell predicts one object: of its best category. NaN stays.
        others = scores < ops.max(scores, -1, keepdims=True)
        return boxes, ops.where(others, 0.0, scores)

    def predict_cells(self, images: Images) -> Decoded:
        """Predicts boxes in pixels, and scores of the categories, for all cells.

        Args:
            images: float32 `(batch, image_size, image_size, 3)`, normalized, RGB.
        """
        predictions = ops.cast(self.network(images, training=False), "float32")
        return decode_yolox(predictions, self.cells, self.strides)

    def get_config(self) -> dict[str, Any]:
        network = keras.saving.serialize_keras_object(self.network)
        return {**super().get_config(), "network": network}


def decode_yolox(
    predictions: Float32[Tensor, "batch cells 85"],
    cells: Float32[np.ndarray, "cells 2"],
    strides: Float32[np.ndarray, "cells 1"],
) -> Decoded:
    """Decodes the values of YOLOX's cells to boxes in pixels and scores."""
    centres = (predictions[..., :2] + cells) * strides
    halves = ops.exp(predictions[..., 2:4]) * strides / 2
    boxes = ops.concatenate([centres - halves, centres + halves], axis=-1)
    return boxes, predictions[..., 4:5] * predictions[..., 5:]
