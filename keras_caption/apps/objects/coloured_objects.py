from typing import Any

import keras
import numpy as np
from jaxtyping import Float32
from keras import ops

from keras_caption.apps.objects.object_colours import (
    COLOURS,
    INNER,
    RGB,
    SPREAD,
    TO_XYZ,
)
from keras_caption.apps.objects.object_detector import Detected, Images, ObjectDetector
from keras_caption.base.arguments import Tensor
from keras_caption.features.extractor import Extractor
from keras_caption.features.keras_defaults import CHANNELS_LAST
from keras_caption.features.roi_align import roi_align
from keras_caption.features.windows import windows
from keras_caption.formats.coco_categories import CATEGORIES

REDUCED = 4  # pixels in each direction that are averaged before colours are named


@keras.saving.register_keras_serializable("keras_caption")
class ColouredObjects(ObjectDetector):
    """Describes the objects in photos by category, score, colours and pixels.

    The first region is the whole image, the other regions are detected objects. A
    region's feature vector has these parts:

    - the one-hot vector of its category, times its score; zeros for the whole image;
    - the shares of 16 colours in the middle of the box, and in the whole box. With d
      the distance of a pixel and a colour in CIELAB, the shares of a pixel are
      `softmax(-d^2 / (2 * 12^2))`;
    - with a `network`, features that are pooled from its grid.

    With a `network`, windows of the image are the regions of a photo in which nothing
    is detected.

    Args:
        detector: `keras_caption.objects.ObjectDetector`.
        network: `keras_caption.features.Extractor` that provides grids and windows, or
            `None`.
        name: str.

    Call arguments:
        inputs: dict, as `to_pixels` returns it.

    Returns:
        dict of `regions`, float32 `(batch, 1 + N, 112)`, or 112 plus the size of the
        network's features; `boxes`, float32 `(batch, 1 + N, 4)`; and `scores`, float32
        `(batch, 1 + N)`, see `ObjectDetector`. The score of the whole image, and of
        windows, is 0.
    """

    dimensions = (*CATEGORIES, *(f"{x} in the middle" for x in COLOURS), *COLOURS)

    def __init__(
        self,
        detector: ObjectDetector,
        network: Extractor | None = None,
        name: str = "coloured_objects",
        **kwargs: Any,
    ):
        super().__init__(
            detector.image_size,
            detector.keeps_proportions,
            detector.confidence,
            detector.max_objects,
            name,
            **kwargs,
        )
        self.detector = detector
        self.in_graphs = detector.in_graphs
        self.network = network
        if network is not None:
            pixels = (f"pixels {i}" for i in range(network.grid_shape[-1]))
            self.dimensions = (*self.dimensions, *pixels)
        self.trainable = False

    def detect(self, images: Images) -> Detected:
        return self.detector.detect(images)

    def place(self, pixels: Any) -> dict[str, Any]:
        placed = super().place(pixels)
        if self.network:
            placed["pixels"] = self.network.place(pixels)
        return placed

    def call(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        boxes, scores, categories = self.find(inputs)
        if self.network:
            boxes, scores, categories = self._or_windows(boxes, scores, categories)
        # Zeros for padding, whose category is -1.
        one_hot = ops.one_hot(categories, len(CATEGORIES), dtype="float32")
        regions = _after_whole(one_hot * ops.expand_dims(scores, -1), 0.0)
        boxes = _after_whole(boxes, [0.0, 0.0, 1.0, 1.0])
        scores = _after_whole(ops.expand_dims(scores, -1), 0.0)
        parts = [regions, colours_of(inputs, boxes)]
        if self.network:
            parts.append(roi_align(self.network.grids(inputs["pixels"]), boxes))
        regions = ops.concatenate(parts, axis=-1)
        valid = ops.any(boxes != 0, axis=-1, keepdims=True)
        regions = ops.where(valid, regions, 0.0)
        return {"regions": regions, "boxes": boxes, "scores": scores[..., 0]}

    def _or_windows(self, boxes, scores, categories):
        """Replaces the regions of photos without objects by windows."""
        # Level 1 is the window of the whole image, which is a region in any case.
        levels = [level for level in self.network.levels if level > 1]
        fixed = windows(levels).reshape(-1, 4)
        missing = max(len(fixed) - boxes.shape[1], 0)
        boxes = ops.pad(boxes, [[0, 0], [0, missing], [0, 0]])
        scores = ops.pad(scores, [[0, 0], [0, missing]])
        categories = ops.pad(categories, [[0, 0], [0, missing]], constant_values=-1)
        fixed = np.pad(fixed, [(0, boxes.shape[1] - len(fixed)), (0, 0)])
        nothing = ops.all(scores == 0, axis=1)
        boxes = ops.where(ops.reshape(nothing, (-1, 1, 1)), fixed, boxes)
        return boxes, scores, categories

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "detector": keras.saving.serialize_keras_object(self.detector),
            "network": keras.saving.serialize_keras_object(self.network),
        }


def colours_of(
    inputs: dict[str, Tensor], boxes: Float32[Tensor, "batch N 4"]
) -> Float32[Tensor, "batch N 32"]:
    """Shares of colours in boxes.

    Args:
        inputs: dict, as `to_pixels` of an `ObjectDetector` returns it.
        boxes: float32 `(batch, N, 4)`, x1, y1, x2, y2 divided by the photo's width
            and height.

    Returns:
        float32 `(batch, N, 32)`, shares of `COLOURS` in the middle of each box, and
        then in the whole box.
    """
    small = ops.average_pool(
        inputs["images"], REDUCED, padding="same", data_format=CHANNELS_LAST
    )
    colours = shares_of_colours(small)
    # From shares of the photo to shares of the square that holds it, (batch, 1, 4).
    extents = ops.expand_dims(ops.tile(inputs["extents"], (1, 2)), 1)
    parts = [roi_align(colours, x * extents) for x in (_middles(boxes), boxes)]
    return ops.concatenate(parts, axis=-1)


def shares_of_colours(
    images: Float32[Tensor, "batch height width 3"],
) -> Float32[Tensor, "batch height width 16"]:
    """Shares of `COLOURS` in each pixel.

    Args:
        images: float32 `(batch, height, width, 3)`, 0 to 255, RGB.

    Returns:
        float32 `(batch, height, width, 16)`, shares that sum to 1.
    """
    named = to_lab(ops.convert_to_tensor(list(RGB.values()), "float32"))  # (16, 3)
    lab = ops.expand_dims(to_lab(images), -2)  # (batch, height, width, 1, 3)
    distances = ops.sum(ops.square(lab - named), axis=-1)
    return ops.softmax(-distances / (2 * SPREAD**2), axis=-1)


def to_lab(colours: Float32[Tensor, "... 3"]) -> Float32[Tensor, "... 3"]:
    """Converts sRGB, float32 `(..., 3)`, 0 to 255, to CIELAB under D65."""
    # The constants are those of the standards: IEC 61966-2-1, and CIE 15.
    x = ops.clip(colours / 255.0, 0.0, 1.0)
    x = ops.where(x <= 0.04045, x / 12.92, ops.power((x + 0.055) / 1.055, 2.4))
    x = ops.matmul(x, ops.transpose(ops.convert_to_tensor(TO_XYZ, "float32")))
    # The power stays finite where the linear branch is taken.
    root = ops.power(ops.maximum(x, 1e-6), 1 / 3)
    x, y, z = ops.split(ops.where(x > 0.008856, root, 7.787 * x + 16 / 116), 3, axis=-1)
    return ops.concatenate([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def _after_whole(values, whole):
    """Puts a region of the whole image before others: `(batch, 1 + N, dim)`."""
    first = ops.zeros_like(values[:, :1]) + ops.convert_to_tensor(whole, values.dtype)
    return ops.concatenate([first, values], axis=1)


def _middles(boxes):
    """The middle of each box."""
    low, high = boxes[..., :2], boxes[..., 2:]
    centres, halves = (low + high) / 2, (high - low) / 2
    return ops.concatenate([centres - INNER * halves, centres + INNER * halves], -1)
