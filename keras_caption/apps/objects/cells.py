from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

# Mean and standard deviation of ImageNet's colours, red, green and blue.
MEAN = (123.675, 116.28, 103.53)
DEVIATION = (58.395, 57.12, 57.375)


def cells_of(
    size: int, strides_of_grids: Sequence[int]
) -> tuple[Float32[np.ndarray, "cells 2"], Float32[np.ndarray, "cells 1"]]:
    """Columns and rows of all cells, `(cells, 2)`, and their strides, `(cells, 1)`."""
    cells, strides = [], []
    for stride in strides_of_grids:
        count = -(-size // stride)  # a grid has a cell for the rest of an image
        rows, columns = np.mgrid[:count, :count]
        cells.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        strides.append(np.full((rows.size, 1), stride))
    return (
        np.concatenate(cells).astype("float32"),
        np.concatenate(strides).astype("float32"),
    )
