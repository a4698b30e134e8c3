import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_caption")
class CellBoxes(keras.layers.Layer):
    """Boxes of the cells of a grid, for a `GeometryBias` among them.

    Call arguments:
        grid: `(batch, height, width, dim)`.

    Returns:
        float32 `(batch, height * width, 4)`, row by row: x1, y1, x2, y2 divided by
        the image's width and height.
    """

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)

    def call(self, grid):
        batch, height, width, _ = ops.shape(grid)
        rows = ops.expand_dims(ops.arange(height, dtype="float32") / height, 1)
        columns = ops.expand_dims(ops.arange(width, dtype="float32") / width, 0)
        sides = (columns, rows, columns + 1 / width, rows + 1 / height)
        boxes = [ops.broadcast_to(side, (height, width)) for side in sides]
        boxes = ops.reshape(ops.stack(boxes, axis=-1), (1, height * width, 4))
        return ops.broadcast_to(boxes, (batch, height * width, 4))
