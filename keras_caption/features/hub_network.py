import math
from typing import Any

import keras
from keras import ops

from keras_caption.base.errors import InputError, hint, missing_extras, need_name
from keras_caption.features.application_network import applications
from keras_caption.features.efficientnet_lite import (
    EFFICIENTNET_LITE,
    load_efficientnet_lite,
)
from keras_caption.features.hub_presets import is_preset, loading_preset
from keras_caption.features.keras_defaults import keras_defaults

IMAGE_SIZE = 224  # if neither the preset nor the caller has a size
POOLED = "pooled"  # in place of the name of a layer


@keras.saving.register_keras_serializable("keras_caption")
class HubNetwork(keras.Model):
    """A vision backbone of KerasHub that makes grids of images.

    The grid is a feature map, or the tokens of patches. Tokens before those of patches
    (class tokens and registers) are dropped. The preset's image converter normalizes
    pixels. A pooled vector is a grid of one cell.

    Args:
        backbone: `keras_hub.models.Backbone` of images.
        converter: `keras_hub.layers.ImageConverter`, with a square `image_size`.
        layer: str, name of the layer whose output is the grid; or `"pooled"`: the
            pooled vector that the backbone returns or, if it returns none, its class
            token or, if it has none, the mean of its feature map or tokens. Defaults
            to the last layer with a feature map or tokens.

    Call arguments:
        images: float `(batch, image_size, image_size, 3)`, 0 to 255, RGB.

    Returns:
        float32 `(batch, height, width, dim)`.

    Raises:
        InputError: If the backbone does not read images, or has no such layer.
    """

    def __init__(
        self,
        backbone: Any,
        converter: Any,
        layer: str | None = None,
        name: str = "network",
        **kwargs: Any,
    ):
        height, width = converter.image_size
        if height != width:
            raise InputError(
                f"{type(backbone).__name__} reads images of {height} x {width} pixels; "
                "only square ones are read."
            )
        inputs = backbone.input
        specs = list(inputs.values()) if isinstance(inputs, dict) else [inputs]
        if len(specs) != 1 or len(specs[0].shape) != 4:
            raise InputError(f"{type(backbone).__name__} does not read images alone.")
        with keras_defaults():
            images = keras.Input((height, width, 3), name="images")
            pixels = converter(images)
            if isinstance(inputs, dict):
                pixels = dict.fromkeys(inputs, pixels)
            features = keras.Model(inputs, output_of(backbone, layer))
            features = features(pixels, training=False)
            patch_size = getattr(backbone, "patch_size", None)
            to_cells = to_cell if layer == POOLED else to_grid
            grid = ops.cast(to_cells(features, height, patch_size), "float32")
            super().__init__(images, grid, name=name, **kwargs)
        self.backbone = backbone
        self.converter = converter
        self.layer = layer

    @property
    def image_size(self) -> int:
        """Height and width of images in pixels."""
        return self.converter.image_size[0]

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "converter": keras.saving.serialize_keras_object(self.converter),
            "layer": self.layer,
        }

    @classmethod
    @keras_defaults()
    def from_config(cls, config: dict[str, Any]) -> "HubNetwork":
        return cls(**keras.saving.deserialize_keras_object(config))


@keras_defaults()
def load_hub_network(
    preset: str,
    layer: str | None = None,
    image_size: int | None = None,
    arguments: dict[str, Any] | None = None,
) -> HubNetwork:
    """Loads the vision backbone, or the vision encoder, of a preset.

    Args:
        preset: str, name, address (such as `hf://...`) or local folder of a KerasHub
            preset; or `"efficientnet_lite2"`, see `load_efficientnet_lite`.
        layer: As in `HubNetwork`.
        image_size: int, height and width of images. Defaults to the only size that the
            backbone reads, or to the size of the preset's image converter.
        arguments: dict of arguments of the backbone that replace those of the preset.

    Raises:
        InputError: If there is no such preset, or it cannot be loaded or reads no
            images.
    """
    with missing_extras():
        import keras_hub

    if preset == EFFICIENTNET_LITE:
        if arguments:
            raise InputError(f"{preset} takes no arguments. Received: {arguments}")
        return HubNetwork(*load_efficientnet_lite(image_size), layer)
    presets = keras_hub.models.Backbone.presets
    if not is_preset(preset, presets):
        known = [*applications(), EFFICIENTNET_LITE, *sorted(presets)]
        raise InputError(
            f"There is no network {preset!r} in keras.applications, and no such preset "
            f"or folder for KerasHub. {hint(preset, known)}"
        )

    arguments = dict(arguments or {})
    with loading_preset(preset, presets):
        converter = keras_hub.layers.ImageConverter.from_preset(preset)
        if image_size and converter.image_size != (image_size, image_size):
            converter.image_size = (image_size, image_size)
            arguments.setdefault("image_shape", (image_size, image_size, 3))
        backbone = keras_hub.models.Backbone.from_preset(preset, **arguments)
        whole, backbone = backbone, getattr(backbone, "vision_encoder", backbone)
        fixed = tuple(getattr(backbone, "image_shape", (None,))[:2])
        if None not in fixed:
            converter.image_size = fixed
        elif converter.image_size is None:
            converter.image_size = (IMAGE_SIZE, IMAGE_SIZE)
        if layer == POOLED and hasattr(whole, "vision_projection"):
            # CLIP projects its embedding of an image outside of the vision encoder.
            vector = whole.vision_projection(whole.vision_pooler(backbone.output))
            backbone = keras.Model(backbone.input, vector, name=backbone.name)
        return HubNetwork(backbone, converter, layer)


def output_of(backbone: Any, layer: str | None) -> Any:
    """The output of a layer. Defaults to the last one with a feature map or tokens.

    Raises:
        InputError: If there is no such layer.
    """
    if layer == POOLED and len(getattr(backbone.output, "shape", ())) == 2:
        return backbone.output
    if layer not in (None, POOLED):
        names = [x.name for x in backbone.layers]
        problem = f"{type(backbone).__name__} has no layer {layer!r}"
        need_name(layer, names, problem)
        outputs = [backbone.get_layer(layer).output]
    else:
        # Backwards: layers that pool tokens, such as SigLIP's head, come after them.
        outputs = [x.output for x in reversed(backbone.operations)]
        outputs.insert(0, backbone.output)
    for output in outputs:
        if len(getattr(output, "shape", ())) in (3, 4):
            return output
    raise InputError(f"{layer or type(backbone).__name__} has no map and no tokens.")


def to_cell(features: Any, image_size: int, patch_size: Any) -> Any:
    """Makes grids of one cell, of pooled vectors.

    Args:
        features: `(batch, dim)`, or those of `to_grid`.
        image_size, patch_size: Of `to_grid`.

    Returns:
        `(batch, 1, 1, dim)`.
    """
    if len(features.shape) == 3:
        grid = to_grid(features, image_size, patch_size)
        has_class = math.prod(grid.shape[1:3]) < features.shape[1]
        features = features[:, 0] if has_class else grid
    if len(features.shape) == 4:
        features = ops.mean(features, axis=(1, 2))
    return ops.expand_dims(features, (1, 2))


def to_grid(features: Any, image_size: int, patch_size: Any) -> Any:
    """Makes grids of tokens; feature maps are grids already.

    Args:
        features: `(batch, height, width, dim)` or `(batch, tokens, dim)`.
        image_size: int, height and width of images in pixels.
        patch_size: int or pair of int, size of the patches in pixels, or `None` if
            unknown.

    Returns:
        `(batch, height, width, dim)`.
    """
    if len(features.shape) == 4:
        return features
    count, dim = features.shape[1:]
    side = math.isqrt(count)
    if patch_size:
        patch = patch_size if isinstance(patch_size, int) else patch_size[0]
        # Later layers may have merged patches: then a smaller square of tokens is left.
        side = min(side, image_size // patch)
    # Counted from the end, since SigLIP states one token more than it returns.
    return ops.reshape(features[:, -(side**2) :], (-1, side, side, dim))
