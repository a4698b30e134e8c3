import os
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.arguments import Count, Share, check
from keras_caption.errors import InputError
from keras_caption.features.application_network import applications, make_application
from keras_caption.features.detectors import load_hub_detector
from keras_caption.features.hub_detector import detect_by
from keras_caption.features.hub_network import IMAGE_SIZE, HubNetwork, load_hub_network
from keras_caption.features.photos import (
    check_photos,
    pixels_of,
    read_photo,
    resize_photo,
)
from keras_caption.features.roi_align import roi_align
from keras_caption.features.windows import windows


@keras.saving.register_keras_serializable("keras_caption")
class Extractor(keras.Model):
    """Extracts features of photos: a grid of them, and regions.

    The grid is the output of a layer of a convolutional network of
    `keras.applications`, or that of a vision backbone of KerasHub, see `HubNetwork`;
    a region's feature is pooled from it by RoI align. The regions are the boxes given;
    if omitted, those of a detector; without a detector, a fixed pyramid of windows.
    Its weights are never trained. A captioner saves its `extractor` with it.

    Networks of the papers: InceptionResNetV2 (8 x 8 x 1536 for 299 pixels, area
    attention), ResNet101 (7 x 7 x 2048 for 224) and VGG16 or VGG19 (14 x 14 x 512 at
    `layer="block5_conv3"` or `"block5_conv4"`; spatial self-attention used VGG-11,
    which `keras.applications` lacks).

    Attributes:
        made: tuple of str, names of the features.

    Args:
        backbone: str, name of a function of `keras.applications`, such as
            `"MobileNet"`; `"efficientnet_lite2"`, whose weights the extra `backbones`
            installs; or a preset of KerasHub: its name, such as
            `"clip_vit_base_patch16"`, an address (`hf://`, `kaggle://`), or a local
            folder. A `HubNetwork` has its own layer, image size and arguments.
        layer: str, name of the layer whose output is the grid. Defaults to the last
            one, of presets the last with a feature map or tokens.
        image_size: int, height and width, in pixels, that photos are resized to.
            Defaults to 224, or to that of the preset.
        levels: Iterable of int, of the pyramid, see `windows`.
        detector: `keras_hub.models.ObjectDetector`, or a preset of one: its name, or
            a local folder.
        confidence: float in [0, 1], least confidence of the detector's regions.
        max_regions: int, greatest number of the detector's regions.
        arguments: dict of further arguments of the function, such as `alpha`, or of
            the preset's backbone. `alpha` defaults to that of a weights file.
        weights: `"imagenet"`, which Keras downloads, the path of a weights file
            without the top, or `None` for random ones. Presets have their own.

    Call arguments:
        images: float `(batch, image_size, image_size, 3)`, 0 to 255, RGB.
        boxes: Optional float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's
            width and height.

    Returns:
        dict of `grid` `(batch, height, width, dim)`, `regions` `(batch, N, dim)` and
        `boxes` `(batch, N, 4)`, zeros for padding.

    Raises:
        InputError: If there is no such network or layer, the weights are another
            network's, or a preset cannot be loaded or is none of images.
    """

    made = ("grid", "regions", "boxes")

    def __init__(
        self,
        backbone: str | HubNetwork = "MobileNet",
        layer: str | None = None,
        image_size: int | None = None,
        levels: Iterable[int] = (1, 2, 3, 4),
        detector: Any = None,
        confidence: float = 0.3,
        max_regions: int = 36,
        arguments: dict[str, Any] | None = None,
        weights: str | None = None,
        name: str = "extractor",
        **kwargs: Any,
    ):
        check(Share, confidence=confidence)
        check(Count, max_regions=max_regions)
        super().__init__(name=name, **kwargs)
        if isinstance(backbone, str) and backbone not in applications():
            if weights not in (None, "imagenet"):
                raise InputError(
                    f"The preset {backbone!r} has its own weights, and takes none of "
                    f"{weights!r}."
                )
            backbone = load_hub_network(backbone, layer, image_size, arguments)
            layer = arguments = None
        self.backbone = backbone
        self.layer = layer
        self.levels = tuple(levels)
        if isinstance(detector, str):
            detector = load_hub_detector(detector)
        self.detector = detector
        self.confidence = confidence
        self.max_regions = max_regions
        self.arguments = dict(arguments or {})
        if isinstance(backbone, HubNetwork):
            self.image_size = backbone.image_size
            self.network, self.preprocess = backbone, None
        else:
            self.image_size = image_size or IMAGE_SIZE
            self.network, self.preprocess, self.arguments = make_application(
                backbone, layer, self.image_size, self.arguments, weights
            )
        self.trainable = False
        self.built = True

    @property
    def grid_shape(self) -> tuple[int, int, int]:
        """Height, width and dim of a grid."""
        return self.network.output.shape[1:]

    def call(self, images: Any, boxes: Any = None) -> dict[str, Any]:
        if boxes is None:
            boxes, valid = self.propose(images)
            boxes = ops.where(ops.expand_dims(valid, -1), boxes, 0.0)
        grid = self.grids(images)
        return {"grid": grid, "regions": roi_align(grid, boxes), "boxes": boxes}

    def grids(self, images: Any) -> Any:
        """Grids of images, `(batch, height, width, dim)`."""
        images = ops.cast(images, "float32")
        if self.preprocess:
            # A copy: some networks' preprocessing changes NumPy arrays in place.
            images = self.preprocess(ops.copy(images))
        return self.network(images, training=False)

    def vectors(self, images: Any) -> Any:
        """Means over the cells of the grids of images, `(batch, dim)`."""
        return ops.mean(self.grids(images), axis=(1, 2))

    def read(self, path: str | os.PathLike) -> np.ndarray:
        """Reads a file, see `read_photo`."""
        return read_photo(path)

    def to_pixels(self, photos: list[str | os.PathLike | np.ndarray]) -> Any:
        """Makes a batch of photos.

        Args:
            photos: List of paths, or of uint8 arrays `(height, width, 3)`.

        Returns:
            float32 `(batch, image_size, image_size, 3)`.

        Raises:
            InputError: If the photos are no list of at least one, or one cannot be
                read.
        """
        return ops.stack([self.place(pixels_of(p)) for p in check_photos(photos)])

    def place(self, pixels: Any) -> Any:
        """Resizes a photo, uint8 `(height, width, 3)`, to one of a call's images."""
        return resize_photo(pixels, self.image_size)

    def propose(self, images: Any) -> tuple[Any, Any]:
        """Proposes regions of photos without annotated objects.

        Args:
            images: Of a call.

        Returns:
            Boxes, float `(batch, N, 4)`, and whether they are valid, bool
            `(batch, N)`. If a detector finds nothing, the whole image is one.
        """
        if self.detector is None:
            fixed = ops.expand_dims(windows(self.levels), 0)
            boxes = ops.repeat(fixed, ops.shape(images)[0], axis=0)
            return boxes, ops.ones(ops.shape(boxes)[:2], "bool")
        boxes, confidence, _ = detect_by(self.detector, images)
        boxes = ops.clip(boxes, 0.0, 1.0)
        size = boxes[..., 2:] - boxes[..., :2]
        good = ops.logical_and(
            confidence >= self.confidence, ops.all(size > 0, axis=-1)
        )
        scores = ops.where(good, confidence, -1.0)
        count = min(self.max_regions, scores.shape[1])
        best = ops.top_k(scores, count)[1]
        boxes = ops.take_along_axis(boxes, ops.expand_dims(best, -1), axis=1)
        mask = ops.take_along_axis(good, best, axis=1)
        # The first is the best: if it is not valid, none is.
        nothing = ops.logical_and(ops.logical_not(mask), ops.arange(count) == 0)
        whole = ops.convert_to_tensor([0.0, 0.0, 1.0, 1.0], boxes.dtype)
        boxes = ops.where(ops.expand_dims(nothing, -1), whole, boxes)
        return boxes, ops.logical_or(mask, nothing)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "layer": self.layer,
            "image_size": self.image_size,
            "levels": self.levels,
            "detector": keras.saving.serialize_keras_object(self.detector),
            "confidence": self.confidence,
            "max_regions": self.max_regions,
            "arguments": self.arguments,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Extractor":
        config = keras.saving.deserialize_keras_object(config)
        backbone = config.get("backbone")
        is_online = isinstance(backbone, str) and backbone not in applications()
        if "weights" in config or is_online or isinstance(config.get("detector"), str):
            raise InputError(
                "A saved extractor should name no weights and no preset of a network "
                "or a detector: they would be downloaded."
            )
        return cls(**config)
