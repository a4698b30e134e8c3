from typing import Any

import keras
import numpy as np
from jaxtyping import Float32, Int32
from keras import ops

from keras_caption.arguments import Tensor
from keras_caption.errors import InputError, missing_extras
from keras_caption.features.categories import COCO_IDS
from keras_caption.features.object_detector import ObjectDetector
from keras_caption.features.suppression import Suppression

STRIDES = (8, 16, 32)  # of the grids whose cells predict objects
# Mean and standard deviation of ImageNet's colours, red, green and blue.
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)
OVERLAP = 0.65  # intersection over union of two objects of a category, at most


@keras.saving.register_keras_serializable("keras_caption")
class Yolox(ObjectDetector):
    """Detects objects by a YOLOX network.

    The network reads photos normalized by the colours of ImageNet. Each cell of its
    grids, of strides 8, 16 and 32 pixels, row by row, predicts one box: the centre
    relative to the cell and the logarithms of width and height, in units of the
    stride, then the probability that there is an object, and those of the 80
    categories of one. The score is the product of both, for the best category. Of
    boxes of one category that overlap by more than 0.65, the best remains.

    Args:
        network: `keras.Model` from float `(batch, height, width, 3)` to float
            `(batch, cells, 85)`.
        image_size: int, a multiple of 32. Defaults to 416.
        confidence, max_objects, name: Of `ObjectDetector`.

    Raises:
        InputError: If the network has another input or output.

    Reference:
        Ge, Liu, Wang, Li, Sun, "YOLOX: Exceeding YOLO Series in 2021",
        arXiv:2107.08430.
    """

    def __init__(
        self,
        network: keras.Model,
        image_size: int = 416,
        confidence: float = 0.3,
        max_objects: int = 36,
        name: str = "yolox",
        **kwargs: Any,
    ):
        super().__init__(image_size, True, confidence, max_objects, name, **kwargs)
        self.network = network
        self.suppression = Suppression(OVERLAP, by_category=True)
        self.cells, self.strides = _cells(image_size)
        self._check_network()
        self.trainable = False

    def _check_network(self):
        cells, values = len(self.cells), 5 + len(COCO_IDS)
        image = keras.KerasTensor((None, self.image_size, self.image_size, 3))
        try:
            shape = self.network.compute_output_spec(image).shape[1:]
        except Exception:  # a network of other inputs fails in any of its layers
            shape = None
        if self.image_size % STRIDES[-1] or shape != (cells, values):
            received = "does not" if shape is None else f"turns them into {shape}"
            raise InputError(
                f"A YOLOX network should turn {self.image_size} x {self.image_size} "
                f"pixels into {cells:,} x {values} values. Received: "
                f"{self.network.name}, which {received}"
            )

    def detect(
        self, images: Float32[Tensor, "batch image_size image_size 3"]
    ) -> tuple[
        Float32[Tensor, "batch N 4"],
        Float32[Tensor, "batch N"],
        Int32[Tensor, "batch N"],
    ]:
        with missing_extras():  # TensorFlow alone suppresses each category apart
            import tensorflow as tf

        boxes, scores = self._predict(images)
        boxes, scores, categories, _ = tf.image.combined_non_max_suppression(
            ops.expand_dims(boxes, 2),
            scores,
            max_output_size_per_class=self.max_objects,
            max_total_size=self.max_objects,
            iou_threshold=OVERLAP,
            score_threshold=self.confidence,
            clip_boxes=False,
        )
        return boxes / self.image_size, scores, ops.cast(categories, "int32")

    def candidates(
        self, images: Float32[Tensor, "batch image_size image_size 3"]
    ) -> tuple[
        Float32[Tensor, "batch cells 4"],
        Float32[Tensor, "batch cells"],
        Int32[Tensor, "batch cells"],
    ]:
        boxes, scores = self._predict(images)
        best, categories = ops.top_k(scores, 1)  # LiteRT lacks `argmax` of Keras
        return boxes, best[..., 0], categories[..., 0]

    def _predict(self, images):
        """The box of each cell, in pixels, and the score of its best category."""
        images = (ops.cast(images, "float32") - MEAN) / DEVIATION
        predictions = ops.cast(self.network(images, training=False), "float32")
        centres = (predictions[..., :2] + self.cells) * self.strides
        halves = ops.exp(predictions[..., 2:4]) * self.strides / 2
        boxes = ops.concatenate([centres - halves, centres + halves], axis=-1)
        scores = predictions[..., 4:5] * predictions[..., 5:]
        scores = ops.where(scores == ops.max(scores, -1, keepdims=True), scores, 0.0)
        return boxes, scores

    def get_config(self) -> dict[str, Any]:
        network = keras.saving.serialize_keras_object(self.network)
        return {**super().get_config(), "network": network}


def _cells(size):
    """Columns and rows of all cells, `(cells, 2)`, and their strides, `(cells, 1)`."""
    cells, strides = [], []
    for stride in STRIDES:
        rows, columns = np.mgrid[: size // stride, : size // stride]
        cells.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        strides.append(np.full((rows.size, 1), stride))
    return (np.concatenate(x).astype("float32") for x in (cells, strides))
