import os
from typing import Any

import keras
import numpy as np
from jaxtyping import Float32, Int32, UInt8
from keras import ops

from keras_caption.arguments import Items, Pixels, Share, Tensor, check
from keras_caption.errors import InputError
from keras_caption.features.categories import CATEGORIES, COCO_IDS, GREY, objects_of
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.features.photos import (
    check_photos,
    pixels_of,
    read_photo,
    resize,
)
from keras_caption.features.suppression import Suppression


class ObjectDetector(keras.Model):
    """Base of the detectors of COCO's objects in photos.

    Its output is what `keras_caption.datasets.CocoObjects` has of annotated objects, so
    it is the `extractor` of a captioner that was trained on those. Detectors are never
    trained here.

    Attributes:
        made: tuple of str, names of the outputs.
        dimensions: tuple of str, what the values of a region's vector stand for.
        suppression: `Suppression` of `candidates`, or `None` if there are none.

    Args:
        image_size: int, height and width of the square that is searched.
        keeps_proportions: bool, whether photos keep their proportions in that square,
            from its upper left corner on, the rest grey, or fill it.
        confidence: float in [0, 1], the least score of an object.
        max_objects: int, greatest number of objects, those of the best scores.

    Call arguments:
        inputs: dict, what `to_pixels` returns.

    Returns:
        dict of `regions`, float32 `(batch, N, 80)`, one-hot vectors of categories in
        the order of COCO's ids; and `boxes`, float32 `(batch, N, 4)`, x1, y1, x2, y2
        divided by the photo's width and height; and `scores`, float32 `(batch, N)`. The
        best come first; padding is zeros. A photo without objects has one region of
        zeros, whose box is the whole photo.
    """

    made = ("regions", "boxes")
    dimensions = CATEGORIES
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

    def detect(
        self, images: Float32[Tensor, "batch image_size image_size 3"]
    ) -> tuple[
        Float32[Tensor, "batch N 4"],
        Float32[Tensor, "batch N"],
        Int32[Tensor, "batch N"],
    ]:
        """Finds objects, see the subclasses.

        Args:
            images: float32 `(batch, image_size, image_size, 3)`, 0 to 255, RGB.

        Returns:
            Boxes, float32 `(batch, N, 4)`, x1, y1, x2, y2 divided by `image_size`;
            scores, float32 `(batch, N)`, those below `confidence` and of padding too;
            and categories, int32 `(batch, N)`, positions in `COCO_IDS`, -1 for others.
        """
        raise NotImplementedError

    def candidates(
        self, images: Float32[Tensor, "batch image_size image_size 3"]
    ) -> tuple[
        Float32[Tensor, "batch N 4"],
        Float32[Tensor, "batch N"],
        Int32[Tensor, "batch N"],
    ]:
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
        nothing = ops.logical_not(ops.any(valid, axis=1, keepdims=True))
        first = ops.reshape(ops.arange(ops.shape(scores)[1]) == 0, (1, -1, 1))
        whole = ops.convert_to_tensor([0.0, 0.0, 1.0, 1.0], "float32")
        boxes = ops.where(ops.logical_and(nothing, first), whole, boxes)
        return {"regions": regions, "boxes": boxes, "scores": scores}

    def find(
        self, inputs: dict[str, Tensor]
    ) -> tuple[
        Float32[Tensor, "batch N 4"],
        Float32[Tensor, "batch N"],
        Int32[Tensor, "batch N"],
    ]:
        """Finds objects of photos of any proportions, the best first.

        Args:
            inputs: dict, what `to_pixels` returns.

        Returns:
            Boxes, float32 `(batch, N, 4)`, x1, y1, x2, y2 divided by the photo's width
            and height; scores, float32 `(batch, N)`; and categories, int32
            `(batch, N)`; where there is no object, zeros, zeros and -1.
        """
        boxes, scores, categories = self.detect(inputs["images"])
        extents = ops.expand_dims(ops.tile(inputs["extents"], (1, 2)), 1)
        boxes = ops.clip(boxes / extents, 0.0, 1.0)
        good = ops.logical_and(scores >= self.confidence, categories >= 0)
        sides = boxes[..., 2:] - boxes[..., :2]
        good = ops.logical_and(good, ops.all(sides > 0, axis=-1))
        scores = ops.where(good, scores, 0.0)
        scores, best = ops.top_k(scores, min(self.max_objects, scores.shape[1]))
        good = scores > 0
        boxes = ops.take_along_axis(boxes, ops.expand_dims(best, -1), axis=1)
        boxes = ops.where(ops.expand_dims(good, -1), boxes, 0.0)
        categories = ops.take_along_axis(categories, best, axis=1)
        return boxes, scores, ops.where(good, categories, -1)

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
            `extents`, float32 `(batch, 2)`, the shares of an image's width and height
            that the photo takes.

        Raises:
            InputError: If the photos are no list of at least one, or one cannot be
                read.
        """
        placed = [self.place(pixels_of(photo)) for photo in check_photos(photos)]
        return {
            name: ops.stack([photo[name] for photo in placed]) for name in placed[0]
        }

    def place(self, pixels: UInt8[Tensor, "height width 3"]) -> dict[str, Tensor]:
        """Resizes a photo into the square, also in a graph of TensorFlow.

        Args:
            pixels: uint8 `(height, width, 3)`.

        Returns:
            dict of `images` and `extents`, see `to_pixels`, of this photo.
        """
        size = self.image_size
        height, width = ops.shape(pixels)[:2]  # tensors, where not known
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


def _greater(x, y):
    """The greater of two sizes, an int if both are."""
    return max(x, y) if isinstance(x, int) else ops.maximum(x, y)


def _resize(pixels, height, width):
    """A photo of another size, bilinear without antialiasing."""
    if isinstance(height, int):
        return resize(pixels, height, width, antialias=False)
    import tensorflow as tf  # whose graphs alone do not know the size of a photo

    return tf.image.resize(pixels, (height, width))
