import math
from typing import Unpack

import keras
from jaxtyping import Float
from keras import ops

from keras_caption.base.arguments import KerasOptions, Shape, Tensor
from keras_caption.base.configs import ConfiguredLayer
from keras_caption.base.errors import InputError
from keras_caption.layers.sockets import size_of


@keras.saving.register_keras_serializable("keras_caption")
class BoxEncoding(ConfiguredLayer):
    """Adds a sinusoidal encoding of each region's box to its features.

    The absolute counterpart of `GeometryBias`, the baseline of the paper's
    Table 4. Centre, width and height of a box are each encoded by sines and cosines
    of geometrically growing wavelengths, as token positions are in a Transformer.
    The paper gives neither the order of channels nor the unit; here each of the four
    numbers, in percent of the image, takes a quarter of the channels.

    Args:
        max_wavelength: float, the longest wavelength, in percent of the image.
            Defaults to 10,000.

    Call arguments:
        inputs: float `(batch, N, dim)`; `dim` must be divisible by 8.
        boxes: float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's width
            and height.

    Returns:
        float `(batch, N, dim)`.

    Raises:
        InputError: If `dim` is not divisible by 8.

    Reference:
        Guo et al., CVPR 2020, section 5.3 and Table 4, "absolute".
    """

    def __init__(self, max_wavelength: float = 10000.0, **kwargs: Unpack[KerasOptions]):
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.max_wavelength = max_wavelength

    def build(self, inputs_shape: Shape, boxes_shape: Shape | None = None) -> None:
        if size_of(inputs_shape) % 8:
            raise InputError(
                "BoxEncoding needs a number of channels divisible by 8. "
                f"Received inputs of shape {tuple(inputs_shape)}"
            )

    def call(
        self, inputs: Float[Tensor, "batch N dim"], boxes: Float[Tensor, "batch N 4"]
    ) -> Float[Tensor, "batch N dim"]:
        inputs = ops.cast(inputs, self.compute_dtype)
        boxes = ops.cast(boxes, "float32")
        corners_min, corners_max = ops.split(boxes, 2, axis=-1)
        geometry = ops.concatenate(
            [(corners_min + corners_max) / 2, corners_max - corners_min], axis=-1
        )
        channels = inputs.shape[-1] // 8  # of the sines of one number, or its cosines
        step = -math.log(self.max_wavelength) / channels
        frequencies = ops.exp(step * ops.arange(channels, dtype="float32"))
        # In percent of the image; (batch, N, 4, dim / 8).
        angles = 100.0 * ops.expand_dims(geometry, -1) * frequencies
        encoding = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        encoding = ops.reshape(encoding, (-1, ops.shape(boxes)[1], 8 * channels))
        return inputs + ops.cast(encoding, inputs.dtype)

    def compute_output_shape(
        self, inputs_shape: Shape, boxes_shape: Shape | None = None
    ) -> Shape:
        return inputs_shape
