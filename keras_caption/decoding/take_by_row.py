from typing import Any

import keras
from jaxtyping import Int
from keras import ops

from keras_caption.base.arguments import Tensor


def take_by_row(values: Tensor, places: Int[Tensor, "rows count"]) -> Any:
    """Takes the values of each row at places of the second axis.

    In TensorFlow, `take_along_axis` copies all values: this looks rows up that are laid
    end to end. On JAX, such a look-up would collect the rows of all devices that share
    a batch.

    Args:
        values: `(rows, size, ...)`.
        places: int `(rows, count)`, from 0 to size - 1.

    Returns:
        `(rows, count, ...)`.
    """
    rest = ops.shape(values)[2:]
    if keras.backend.backend() == "jax":
        places = ops.reshape(places, (*places.shape, *[1] * len(rest)))
        return ops.take_along_axis(values, places, axis=1)
    size = values.shape[1]
    rows = ops.arange(ops.shape(places)[0], dtype=places.dtype) * size
    flat = ops.reshape(values, (-1, *rest))
    return ops.take(flat, ops.expand_dims(rows, 1) + places, axis=0)
