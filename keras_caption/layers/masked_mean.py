from jaxtyping import Bool, Float
from keras import ops

from keras_caption.base.arguments import Tensor


def masked_mean(
    items: Float[Tensor, "batch M dim"], mask: Bool[Tensor, "batch M"] | None = None
) -> Float[Tensor, "batch dim"]:
    """Computes the mean of the valid items; zeros if there are none.

    Args:
        items: float `(batch, M, dim)`.
        mask: bool `(batch, M)`, True where valid. Defaults to `None`, all valid.

    Returns:
        float `(batch, dim)`.
    """
    if mask is None:
        return ops.mean(items, axis=1)
    valid = ops.expand_dims(mask, -1)
    # An example without valid items divides 0 by 1, not by 0.
    count = ops.maximum(ops.sum(ops.cast(valid, "float32"), axis=1), 1.0)
    # `where`, not a product: padding may hold NaN. Sums overflow in float16.
    total = ops.sum(ops.where(valid, ops.cast(items, "float32"), 0.0), axis=1)
    return ops.cast(total / count, items.dtype)
