import os
from typing import Any

import keras
import numpy as np
from jaxtyping import Float32, Int32, UInt8
from keras import ops

from keras_caption.apps.objects.suppression import Suppression
from keras_caption.base.arguments import Items, Pixels, Share, Tensor, check
from keras_caption.base.errors import InputError
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.features.photos import (
    check_photos,
    pixels_of,
    read_photo,
    resize,
)
from keras_caption.formats.coco_categories import CATEGORIES, COCO_IDS, GREY, objects_of

Images = Float32[Tensor, "batch image_size image_size 3"]
# Boxes, scores and categories.
Detected = tuple[
    Float32[Tensor, "batch N 4"], Float32[Tensor, "batch N"], Int32[Tensor, "batch N"]
]


class ObjectDetector(keras.Model):
    """Base of the detectors of COCO's objects in photos.

    The outputs have the form of annotated objects in
    `keras_caption.datasets.CocoObjects`: a detector is the `extractor` of a captioner
    that was trained on annotated objects. Detectors are never trained here.

    Attributes:
        made: tuple of str, names of the outputs.
        dimensions: tuple of str, names of the values of a region's vector.
        in_graphs: bool, whether the detector runs in compiled and exported graphs.
        suppression: `Suppression` of `candidates`, or `None` if there are none.

    Args:
        image_size: int, height and width of the square that the detector reads.
        keeps_proportions: bool, whether photos keep their proportions. They then lie in
            the upper left corner of the square, and the rest is grey. Otherwise they
            fill the square.
        confidence: float in [0, 1], the least score of an object.
        max_objects: int, greatest number of objects. Those with the best scores remain.

    Call arguments:
        inputs: dict, as `to_pixels` returns it.

    Returns:
        dict of `regions`, float32 `(batch, N, 80)`, one-hot vectors of categories in
        the order of COCO's ids; `boxes`, float32 `(batch, N, 4)`, x1, y1, x2, y2
        divided by the photo's width and height; and `scores`, float32 `(batch, N)`.
        Objects are ordered by score, the best first; padding is zeros. A photo without
        objects has one region of zeros, whose box is the whole photo.
    """

    made = ("regions", "boxes")
    dimensions = CATEGORIES
    in_graphs = True
    suppression: Suppression | None = None

    def __init__(
        self,
        image_size: int,
        keeps_proportions: bool,
        confidence: float = 0.3,
        max_objects: int = 36,
        name: str = "object_detector",
        **kwargs: Any,
    ):
        check(Share, confidence=confidence)
        check(Items, max_objects=max_objects)
        check(Pixels, image_size=image_size)
        with keras_defaults():
            super().__init__(name=name, **kwargs)
        self.image_size = image_size
        self.keeps_proportions = keeps_proportions
        self.confidence = confidence
        self.max_objects = max_objects
        self.built = True

    def detect(self, images: Images) -> Detected:
        """Detects objects; subclasses implement it.

        Args:
            images: float32 `(batch, image_size, image_size, 3)`, 0 to 255, RGB.

        Returns:
            Boxes, float32 `(batch, N, 4)`, x1, y1, x2, y2 divided by `image_size`;
            scores, float32 `(batch, N)`, which may be below `confidence` or of padding,
            and are NaN if the network returns NaN, see `with_nan`; and categories,
            int32 `(batch, N)`, indices into `COCO_IDS`, or -1.
        """
        raise NotImplementedError

    def candidates(self, images: Images) -> Detected:
        """All boxes of a network, before those that overlap are suppressed.

        A detector that has them, and `suppression`, can be exported.

        Args:
            images: Of `detect`.

        Returns:
            Boxes, float32 `(batch, N, 4)`, x1, y1, x2, y2 in pixels; scores and
            categories, those of `detect`.
        """
        raise NotImplementedError

    def call(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        boxes, scores, categories = self.find(inputs)
        valid = ops.expand_dims(scores > 0, -1)
        regions = ops.one_hot(categories, len(COCO_IDS), dtype="float32")
        regions *= ops.cast(valid, "float32")
        # A captioner refuses an image without a valid region, and a region is valid if
        # its box has an area: the whole photo stands for no object.
        nothing = ops.logical_not(ops.any(valid, axis=1, keepdims=True))
        first = ops.reshape(ops.arange(ops.shape(scores)[1]) == 0, (1, -1, 1))
        whole = ops.convert_to_tensor([0.0, 0.0, 1.0, 1.0], "float32")
        boxes = ops.where(ops.logical_and(nothing, first), whole, boxes)
        return {"regions": regions, "boxes": boxes, "scores": scores}

    def find(self, inputs: dict[str, Tensor]) -> Detected:
        """Detects objects in photos of any proportions, ordered by score.

        Args:
            inputs: dict, as `to_pixels` returns it.

        Returns:
            Boxes, float32 `(batch, N, 4)`, x1, y1, x2, y2 divided by the photo's width
            and height; scores, float32 `(batch, N)`; and categories, int32
            `(batch, N)`. Padding has zeros, 0 and -1. If the network returns NaN for a
            photo, its scores are NaN, see `refuse_nan`.
        """
        boxes, scores, categories = self.detect(inputs["images"])
        has_nan = ops.any(ops.isnan(scores), axis=1, keepdims=True)
        # From shares of the square to shares of the photo in it, (batch, 1, 4).
        extents = ops.expand_dims(ops.tile(inputs["extents"], (1, 2)), 1)
        boxes = ops.clip(boxes / extents, 0.0, 1.0)
        good = ops.logical_and(scores >= self.confidence, categories >= 0)
        sides = boxes[..., 2:] - boxes[..., :2]
        good = ops.logical_and(good, ops.all(sides > 0, axis=-1))  # not in the padding
        scores = ops.where(good, scores, 0.0)
        scores, best = ops.top_k(scores, min(self.max_objects, scores.shape[1]))
        good = scores > 0
        boxes = ops.take_along_axis(boxes, ops.expand_dims(best, -1), axis=1)
        boxes = ops.where(ops.expand_dims(good, -1), boxes, 0.0)
        categories = ops.take_along_axis(categories, best, axis=1)
        scores = ops.where(has_nan, np.nan, scores)
        return boxes, scores, ops.where(good, categories, -1)

    def refuse_nan(self, outputs: dict[str, Tensor]) -> None:
        """Raises `InputError` if the network returned NaN, which graphs cannot raise.

        Args:
            outputs: dict, what the detector returns.
        """
        if np.isnan(outputs["scores"]).any():
            raise InputError(
                f"The detector '{self.name}' returns values that are no numbers (NaN), "
                "as a network does whose weights are damaged, or too great for its "
                "type."
            )

    objects_of = staticmethod(objects_of)

    def read(self, path: str | os.PathLike) -> np.ndarray:
        """Reads a file, see `read_photo`."""
        return read_photo(path)

    def to_pixels(
        self, photos: list[str | os.PathLike | np.ndarray]
    ) -> dict[str, Tensor]:
        """Makes a batch of photos.

        Args:
            photos: List of paths, or of uint8 arrays `(height, width, 3)`.

        Returns:
            dict of `images`, float32 `(batch, image_size, image_size, 3)`, and
            `extents`, float32 `(batch, 2)`, the photo's shares of the width and height
            of the square.

        Raises:
            InputError: If `photos` is no list of at least one photo, or a photo cannot
                be read.
        """
        placed = [self.place(pixels_of(photo)) for photo in check_photos(photos)]
        return {
            name: ops.stack([photo[name] for photo in placed]) for name in placed[0]
        }

    def place(self, pixels: UInt8[Tensor, "height width 3"]) -> dict[str, Tensor]:
        """Resizes a photo into the square. Works in a graph of TensorFlow too.

        Args:
            pixels: uint8 `(height, width, 3)`.

        Returns:
            dict of `images` and `extents` of this photo, see `to_pixels`.
        """
        size = self.image_size
        height, width = ops.shape(pixels)[:2]  # tensors in a graph, else int
        if self.keeps_proportions:
            longest = _greater(height, width)
            height, width = (_greater(x * size // longest, 1) for x in (height, width))
        else:
            height, width = size, size
        pixels = ops.cast(pixels, "float32")
        resized = _resize(pixels, height, width)
        image = ops.pad(
            resized,
            [[0, size - height], [0, size - width], [0, 0]],
            constant_values=GREY,
        )
        extents = ops.cast(ops.stack([width, height]), "float32") / size
        return {"images": ops.reshape(image, (size, size, 3)), "extents": extents}

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "image_size": self.image_size,
            "confidence": self.confidence,
            "max_objects": self.max_objects,
        }

    @classmethod
    @keras_defaults()
    def from_config(cls, config: dict[str, Any]) -> "ObjectDetector":
        config = keras.saving.deserialize_keras_object(config)
        if isinstance(config.get("network"), str):
            raise InputError(
                "A saved detector should name no preset: it would be downloaded."
            )
        return cls(**config)


def with_nan(
    scores: Float32[Tensor, "batch N"], predictions: Any
) -> Float32[Tensor, "batch N"]:
    """Makes the scores of a photo NaN if a prediction of the network is NaN.

    Suppression passes over boxes whose score is NaN, as if nothing were detected.

    Args:
        scores: float32 `(batch, N)`, after suppression.
        predictions: Nested tensors `(batch, ...)`, before it.
    """
    for x in keras.tree.flatten(predictions):
        flat = ops.reshape(x, (ops.shape(x)[0], -1))
        has_nan = ops.any(ops.isnan(flat), axis=1, keepdims=True)
        scores = ops.where(has_nan, np.nan, scores)
    return scores


def _greater(x, y):
    """The greater of two sizes, an int if both are."""
    return max(x, y) if isinstance(x, int) else ops.maximum(x, y)


def _resize(pixels, height, width):
    """A photo of another size, bilinear without antialiasing."""
    if isinstance(height, int):
        return resize(pixels, height, width, antialias=False)
    import tensorflow as tf  # only its graphs have photos of unknown size

    return tf.image.resize(pixels, (height, width))
