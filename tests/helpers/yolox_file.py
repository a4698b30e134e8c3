"""A YOLOX network that finds what is white, with known boxes."""

import keras
import numpy as np

BRIGHT = 2.0  # of a normalized white pixel it is more, of a grey or black one less


def white_yolox(category=16, width=1.0, image_size=64):
    """A network that finds an object in every white cell of 8 x 8 pixels.

    Args:
        category: int, of the objects.
        width: float, width and height of boxes in cells.
        image_size: int, or `None`.
    """
    image = keras.Input((image_size, image_size, 3))
    grids = []
    for stride in (8, 16, 32):
        kernel, bias = np.zeros((stride, stride, 3, 85)), np.zeros(85)
        bias[:2], bias[2:4] = 0.5, np.log(width)  # around the centre of the cell
        bias[4:] = -20.0
        bias[5 + category] = 4.0
        if stride == 8:
            kernel[..., 4] = 10 / (3 * stride**2)
            bias[4] = -10 * BRIGHT
        conv = keras.layers.Conv2D(85, stride, stride)
        grid = conv(image)
        conv.set_weights([kernel, bias])
        grids.append(keras.layers.Reshape((-1, 85))(grid))
    cells = keras.layers.Concatenate(axis=1)(grids)
    boxes, chances = keras.ops.split(cells, [4], axis=-1)
    chances = keras.ops.sigmoid(chances)
    output = keras.ops.concatenate([boxes, chances], axis=-1)
    return keras.Model(image, output, name="white_yolox")


def photo(height, width, cells, cell=8):
    """A black photo with white cells, each (row, column)."""
    pixels = np.zeros((height, width, 3), "uint8")
    for row, column in cells:
        pixels[row * cell : (row + 1) * cell, column * cell : (column + 1) * cell] = 255
    return pixels
