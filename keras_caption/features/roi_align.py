from jaxtyping import Float

from keras_caption.base.arguments import Tensor


def roi_align(
    grid: Float[Tensor, "batch height width dim"],
    boxes: Float[Tensor, "batch N 4"],
    samples: int = 14,
) -> Float[Tensor, "batch N dim"]:
    """Pools the features of a box to one vector by RoI align.

    The grid is interpolated bilinearly at `samples` x `samples` evenly spaced points of
    the box, and the samples are averaged: RoI align with a single bin. Bilinear weights
    are products of a weight of the row and one of the column, so that two matrix
    products compute all samples of all boxes.

    Args:
        grid: float `(batch, height, width, dim)`. The centres of the outermost cells
            lie half a cell from the image's edges; beyond them the grid is constant.
        boxes: float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's width and
            height.
        samples: int, number of rows, and of columns, of points in a box.

    Returns:
        `(batch, N, dim)`.

    Reference:
        He et al., "Mask R-CNN", ICCV 2017.
    """
    from keras import ops

    boxes = ops.cast(boxes, "float32")
    height, width = ops.shape(grid)[1:3]
    columns = _weights(boxes[..., 0], boxes[..., 2], width, samples)
    rows = _weights(boxes[..., 1], boxes[..., 3], height, samples)
    # Positions need float32; the products have the precision of the grid.
    rows, columns = ops.cast(rows, grid.dtype), ops.cast(columns, grid.dtype)
    return ops.einsum("bnh,bnw,bhwd->bnd", rows, columns, grid)


def _weights(start, end, size, samples):
    """Weights of `size` cells between two positions, `(batch, N, size)`."""
    from keras import ops

    shares = (ops.arange(samples, dtype="float32") + 0.5) / samples
    # (batch, N, samples)
    positions = ops.expand_dims(start, -1) + ops.expand_dims(end - start, -1) * shares
    # In cells, counted from the centre of the first.
    positions = ops.clip(positions * size - 0.5, 0.0, size - 1.0)
    distances = ops.abs(
        ops.expand_dims(positions, -1) - ops.arange(size, dtype="float32")
    )
    # Linear interpolation: (batch, N, samples, size), averaged over the samples.
    return ops.mean(ops.maximum(1.0 - distances, 0.0), axis=-2)
