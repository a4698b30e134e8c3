from typing import Unpack

import keras
from jaxtyping import Float, Float32
from keras import ops

from keras_caption.base.arguments import KerasOptions, Tensor


@keras.saving.register_keras_serializable("keras_caption")
class CellBoxes(keras.layers.Layer):
    """Computes the boxes of a grid's cells, for a `GeometryBias` between cells.

    Call arguments:
        grid: `(batch, height, width, dim)`.

    Returns:
        float32 `(batch, height * width, 4)`, x1, y1, x2, y2 divided by the image's
        width and height, of the cells row by row.
    """

    def __init__(self, **kwargs: Unpack[KerasOptions]):
        super().__init__(autocast=False, **kwargs)

    def call(
        self, grid: Float[Tensor, "batch height width dim"]
    ) -> Float32[Tensor, "batch height*width 4"]:
        batch, height, width, _ = ops.shape(grid)
        rows = ops.expand_dims(ops.arange(height, dtype="float32") / height, 1)
        columns = ops.expand_dims(ops.arange(width, dtype="float32") / width, 0)
        sides = (columns, rows, columns + 1 / width, rows + 1 / height)
        boxes = [ops.broadcast_to(side, (height, width)) for side in sides]
        boxes = ops.reshape(ops.stack(boxes, axis=-1), (1, height * width, 4))
        return ops.broadcast_to(boxes, (batch, height * width, 4))
