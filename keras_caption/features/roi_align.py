from jaxtyping import Float

from keras_caption.arguments import Tensor


def roi_align(
    grid: Float[Tensor, "batch height width dim"],
    boxes: Float[Tensor, "batch N 4"],
    samples: int = 14,
) -> Float[Tensor, "batch N dim"]:
    """Pools features of boxes: means of bilinear interpolations within them.

    A box is sampled at `samples` x `samples` evenly spaced points, and the samples
    are averaged: RoI align, its bins pooled to one. Weights of rows and of columns are
    computed separately and applied as two matrix products, which is the same.

    Args:
        grid: float `(batch, height, width, dim)`; its cells' centres lie half a cell
            from the image's edges. Beyond the outermost centres it is constant.
        boxes: float `(batch, N, 4)`, x1, y1, x2, y2 divided by the image's width and
            height.
        samples: int, number of rows and of columns of points.

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
    rows, columns = ops.cast(rows, grid.dtype), ops.cast(columns, grid.dtype)
    return ops.einsum("bnh,bnw,bhwd->bnd", rows, columns, grid)


def _weights(start, end, size, samples):
    """Weights of `size` cells between two positions, `(batch, N, size)`."""
    from keras import ops

    shares = (ops.arange(samples, dtype="float32") + 0.5) / samples
    positions = ops.expand_dims(start, -1) + ops.expand_dims(end - start, -1) * shares
    positions = ops.clip(positions * size - 0.5, 0.0, size - 1.0)
    distances = ops.abs(
        ops.expand_dims(positions, -1) - ops.arange(size, dtype="float32")
    )
    return ops.mean(ops.maximum(1.0 - distances, 0.0), axis=-2)
