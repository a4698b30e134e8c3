import difflib
import inspect

import keras
from keras import ops

from keras_caption.errors import InputError
from keras_caption.features.roi_align import roi_align
from keras_caption.features.windows import windows


@keras.saving.register_keras_serializable("keras_caption")
class Extractor(keras.Model):
    """Makes features out of photos: a grid of them, and regions.

    The grid is what a layer of a convolutional network of `keras.applications` makes
    of a photo; a region's feature is pooled from it by RoI align. The regions are
    the boxes given or, without any, a fixed pyramid of windows. Its weights are
    never trained. Once it is a captioner's `extractor`, it is saved with it.

    Of the papers' networks, InceptionResNetV2 (8 x 8 x 1536 for 299 pixels, area
    attention), ResNet101 (7 x 7 x 2048 for 224) and VGG16 or VGG19 (14 x 14 x 512 at
    `layer="block5_conv3"` or `"block5_conv4"`; spatial self-attention used VGG-11,
    which `keras.applications` lacks) are at hand.

    Args:
        backbone: Name of a function of `keras.applications`, such as `"MobileNet"`.
        layer: Name of the layer whose output is the grid; the last one where `None`.
        image_size: Height and width, in pixels, that photos are brought to.
        levels: Of the pyramid, see `windows`.
        arguments: dict of further arguments of the function, such as `alpha`.
        weights: `"imagenet"`, which Keras downloads, a path of a weights file without
            the top, or `None` for random ones.

    Call arguments:
        images: float `(batch, image_size, image_size, 3)`, 0 to 255, RGB.
        boxes: Optional float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's
            width and height.

    Returns:
        dict of `grid` `(batch, height, width, dim)`, `regions` `(batch, N, dim)` and
        `boxes` `(batch, N, 4)`.

    Raises:
        InputError: If there is no such network or layer, or the weights are another
            network's.
    """

    def __init__(
        self,
        backbone="MobileNet",
        layer=None,
        image_size=224,
        levels=(1, 2, 3, 4),
        arguments=None,
        weights=None,
        name="extractor",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self.backbone = backbone
        self.layer = layer
        self.image_size = image_size
        self.levels = tuple(levels)
        self.arguments = dict(arguments or {})
        make = getattr(keras.applications, backbone, None)
        if not inspect.isfunction(make):
            networks = [
                n
                for n in dir(keras.applications)
                if inspect.isfunction(getattr(keras.applications, n))
            ]
            near = difflib.get_close_matches(backbone, networks, n=1, cutoff=0.0)
            raise InputError(
                f"keras.applications has no {backbone!r}. Did you mean {near[0]}?"
            )
        self.preprocess = inspect.getmodule(make).preprocess_input
        try:
            network = make(
                include_top=False,
                weights=weights,
                input_shape=(image_size, image_size, 3),
                **self.arguments,
            )
        except (ValueError, OSError) as error:
            reason = str(error).strip().splitlines()[0]
            raise InputError(
                f"{backbone} with weights={weights!r} cannot be made: {reason}"
            ) from None
        if layer is not None:
            names = [of_network.name for of_network in network.layers]
            if layer not in names:
                near = difflib.get_close_matches(layer, names, n=3, cutoff=0.0)
                raise InputError(
                    f"{backbone} has no layer {layer!r}. Did you mean "
                    f"{' or '.join(near)}?"
                )
            network = keras.Model(network.input, network.get_layer(layer).output)
        self.network = network
        self.trainable = False
        self.built = True

    @property
    def grid_shape(self):
        """Height, width and dim of a grid."""
        return self.network.output.shape[1:]

    def call(self, images, boxes=None):
        # A copy: some networks' preprocessing changes NumPy arrays in place.
        images = self.preprocess(ops.copy(ops.cast(images, "float32")))
        grid = self.network(images, training=False)
        if boxes is None:
            fixed = ops.expand_dims(windows(self.levels), 0)
            boxes = ops.repeat(fixed, ops.shape(images)[0], axis=0)
        return {"grid": grid, "regions": roi_align(grid, boxes), "boxes": boxes}

    def get_config(self):
        return {
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "backbone": self.backbone,
            "layer": self.layer,
            "image_size": self.image_size,
            "levels": self.levels,
            "arguments": self.arguments,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**keras.saving.deserialize_keras_object(config))
