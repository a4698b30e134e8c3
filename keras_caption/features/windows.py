from collections.abc import Iterable

import numpy as np
from jaxtyping import Float32


def windows(levels: Iterable[int] = (1, 2, 3, 4)) -> Float32[np.ndarray, "windows 4"]:
    """Makes a fixed pyramid of boxes, for images without annotated objects.

    Args:
        levels: Iterable of int; level n cuts the image into n x n equal windows.

    Returns:
        float32 `(windows, 4)`, x1, y1, x2, y2 divided by the image's width and
        height, level by level, row by row.
    """
    boxes = [
        (column / n, row / n, (column + 1) / n, (row + 1) / n)
        for n in levels
        for row in range(n)
        for column in range(n)
    ]
    return np.array(boxes, "float32")
