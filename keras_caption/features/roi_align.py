from keras import ops


def roi_align(grid, boxes, samples=14):
    """Features of boxes: means of what bilinear interpolation finds within them.

    A box is sampled at `samples` x `samples` evenly spaced points, at their exact
    places, and the samples are averaged: RoI align, its bins pooled to one. The
    weights of rows and of columns are found apart and applied as two matrix
    products, which is the same.

    Args:
        grid: float `(batch, height, width, dim)`; its cells' centres lie half a cell
            from the image's edges. Beyond the outermost centres it goes on flat.
        boxes: float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's width and
            height.
        samples: Number of rows and of columns of points.

    Returns:
        `(batch, N, dim)`.

    Reference:
        He et al., "Mask R-CNN", ICCV 2017.
    """
    boxes = ops.cast(boxes, "float32")
    height, width = ops.shape(grid)[1:3]
    columns = _weights(boxes[..., 0], boxes[..., 2], width, samples)
    rows = _weights(boxes[..., 1], boxes[..., 3], height, samples)
    rows, columns = ops.cast(rows, grid.dtype), ops.cast(columns, grid.dtype)
    return ops.einsum("bnh,bnw,bhwd->bnd", rows, columns, grid)


def _weights(start, end, size, samples):
    """How much each of `size` cells counts between two places, `(batch, N, size)`."""
    shares = (ops.arange(samples, dtype="float32") + 0.5) / samples
    places = ops.expand_dims(start, -1) + ops.expand_dims(end - start, -1) * shares
    places = ops.clip(places * size - 0.5, 0.0, size - 1.0)
    distances = ops.abs(ops.expand_dims(places, -1) - ops.arange(size, dtype="float32"))
    return ops.mean(ops.maximum(1.0 - distances, 0.0), axis=-2)
