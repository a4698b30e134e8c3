import os
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from jaxtyping import Float, Float32, UInt8
from keras import ops

from keras_caption.base.arguments import Levels, Pixels, Tensor, check
from keras_caption.base.errors import InputError
from keras_caption.features.application_network import applications, make_application
from keras_caption.features.hub_network import (
    IMAGE_SIZE,
    POOLED,
    HubNetwork,
    load_hub_network,
)
from keras_caption.features.keras_defaults import CHANNELS_LAST, keras_defaults
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
    """Extracts features of photos: a grid, and regions.

    The grid is the output of a layer of a convolutional network of
    `keras.applications`, or of a vision backbone of KerasHub, see `HubNetwork`. The
    features of regions are pooled from the grid by RoI align. The regions are `boxes`
    or, if omitted, a fixed pyramid of windows. (`ColouredObjects` detects objects as
    regions.) The weights are never trained. A captioner is saved with its `extractor`.

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
            layer; for presets, to the last one with a feature map or tokens. For
            presets, `"pooled"` is the pooled vector of the image: a grid of one cell,
            and one region, see `HubNetwork`.
        image_size: int, height and width of resized photos, in pixels. Defaults to
            224, or to the size of the preset.
        levels: Iterable of int, levels of the pyramid of windows, see `windows`. A
            pooled vector has one window.
        arguments: dict of further arguments of the function, such as `alpha`, or of
            the preset's backbone. `alpha` defaults to the one of a weights file.
        weights: `"imagenet"`, which Keras downloads, the path of a weights file
            without the top, or `None` for random weights. Presets have their own.

    Call arguments:
        images: float `(batch, image_size, image_size, 3)`, 0 to 255, RGB.
        boxes: Optional float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's
            width and height.

    Returns:
        dict of `grid` `(batch, height, width, dim)`, `regions` `(batch, N, dim)` and
        `boxes` `(batch, N, 4)`, zeros for padding.

    Raises:
        InputError: If there is no such network or layer, the weights belong to another
            network, or a preset cannot be loaded or reads no images.
    """

    made = ("grid", "regions", "boxes")

    def __init__(
        self,
        backbone: str | HubNetwork = "MobileNet",
        layer: str | None = None,
        image_size: int | None = None,
        levels: Iterable[int] = (1, 2, 3, 4),
        arguments: dict[str, Any] | None = None,
        weights: str | None = None,
        name: str = "extractor",
        **kwargs: Any,
    ):
        check(Pixels | None, image_size=image_size)
        check(Levels, levels=[*levels])
        with keras_defaults():
            super().__init__(name=name, **kwargs)
        if isinstance(backbone, str) and backbone not in applications():
            if weights not in (None, "imagenet"):
                raise InputError(
                    f"The preset {backbone!r} has its own weights: it does not take "
                    f"weights={weights!r}."
                )
            backbone = load_hub_network(backbone, layer, image_size, arguments)
            layer = arguments = None
        self.backbone = backbone
        self.layer = layer
        self.arguments = dict(arguments or {})
        if isinstance(backbone, HubNetwork):
            self.image_size = backbone.image_size
            self.network, self.preprocess = backbone, None
        else:
            self.image_size = image_size or IMAGE_SIZE
            self.network, self.preprocess, self.arguments = make_application(
                backbone, layer, self.image_size, self.arguments, weights
            )
        pooled = self.network is backbone and backbone.layer == POOLED
        # Windows of a single cell would all have the same features.
        self.levels = (1,) if pooled else tuple(levels)
        self.trainable = False
        self.built = True

    @property
    def grid_shape(self) -> tuple[int, int, int]:
        """Height, width and dim of a grid."""
        return self.network.output.shape[1:]

    def call(
        self,
        images: Float[Tensor, "batch image_size image_size 3"],
        boxes: Float[Tensor, "batch N 4"] | None = None,
    ) -> dict[str, Tensor]:
        if boxes is None:
            fixed = ops.expand_dims(windows(self.levels), 0)
            boxes = ops.repeat(fixed, ops.shape(images)[0], axis=0)
        grid = self.grids(images)
        return {"grid": grid, "regions": roi_align(grid, boxes), "boxes": boxes}

    def grids(
        self, images: Float[Tensor, "batch image_size image_size 3"]
    ) -> Float[Tensor, "batch height width dim"]:
        """Grids of images, `(batch, height, width, dim)`."""
        images = ops.cast(images, "float32")
        if self.preprocess:
            # A copy: some networks' preprocessing changes NumPy arrays in place.
            images = self.preprocess(ops.copy(images), data_format=CHANNELS_LAST)
        return self.network(images, training=False)

    def vectors(
        self, images: Float[Tensor, "batch image_size image_size 3"]
    ) -> Float[Tensor, "batch dim"]:
        """Means over the cells of the grids of images, `(batch, dim)`."""
        return ops.mean(self.grids(images), axis=(1, 2))

    def read(self, path: str | os.PathLike) -> np.ndarray:
        """Reads a file, see `read_photo`."""
        return read_photo(path)

    def to_pixels(
        self, photos: list[str | os.PathLike | np.ndarray]
    ) -> Float32[Tensor, "batch image_size image_size 3"]:
        """Makes a batch of photos.

        Args:
            photos: List of paths, or of uint8 arrays `(height, width, 3)`.

        Returns:
            float32 `(batch, image_size, image_size, 3)`.

        Raises:
            InputError: If `photos` is no list of at least one photo, or a photo cannot
                be read.
        """
        return ops.stack([self.place(pixels_of(p)) for p in check_photos(photos)])

    def place(
        self, pixels: UInt8[Tensor, "height width 3"]
    ) -> Float32[Tensor, "image_size image_size 3"]:
        """Resizes a photo, uint8 `(height, width, 3)`, for a batch of images."""
        return resize_photo(pixels, self.image_size)

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "layer": self.layer,
            "image_size": self.image_size,
            "levels": self.levels,
            "arguments": self.arguments,
        }

    @classmethod
    @keras_defaults()
    def from_config(cls, config: dict[str, Any]) -> "Extractor":
        config = keras.saving.deserialize_keras_object(config)
        backbone = config.get("backbone")
        is_online = isinstance(backbone, str) and backbone not in applications()
        if "weights" in config or is_online:
            raise InputError(
                "A saved extractor should name no weights and no preset of a network: "
                "they would be downloaded."
            )
        return cls(**config)
