"""Padding of batches to few shapes: XLA compiles a step for each shape."""

from typing import Any

import tensorflow as tf

from keras_caption.base.compilation import SIZES, round_up


def padded_to_few_shapes(
    batch: dict[str, tf.Tensor], **shapes: tuple[int | None, ...]
) -> dict[str, tf.Tensor]:
    """Pads the tensors of a batch with zeros behind, which all readers ignore.

    Args:
        batch: dict of tensors. Sizes that are unknown when the pipeline is built are
            rounded up, see `keras_caption.compilation.round_up`.
        **shapes: Shapes of tensors by name, tuples of int, or of `None` for a size that
            is rounded up. They replace the shapes of the tensors.
    """
    return {
        name: pad(values, shapes.get(name, tuple(values.shape)))
        for name, values in batch.items()
    }


def pad(
    values: tf.Tensor, shape: tuple[Any, ...], greatest: int | None = None
) -> tf.Tensor:
    """Pads a tensor with zeros behind.

    Args:
        values: Tensor.
        shape: tuple of int, int32 scalars, and `None` for sizes that are rounded up.
        greatest: int, upper bound of the rounded sizes. Defaults to `None`, no bound.
    """
    now = tf.shape(values)
    sizes = tf.stack(
        [
            tf.minimum(round_up_in_graph(now[i]), greatest or tf.int32.max)
            if size is None
            else size
            for i, size in enumerate(shape)
        ]
    )
    behind = sizes - now
    padded = tf.pad(values, tf.stack([tf.zeros_like(behind), behind], axis=1))
    return tf.ensure_shape(
        padded, [size if isinstance(size, int) else None for size in shape]
    )


def round_up_in_graph(size: tf.Tensor) -> tf.Tensor:
    """Computes `keras_caption.compilation.round_up` of an int32 scalar in a graph."""
    greatest = SIZES[-1]
    # A table of all small sizes: `round_up` is Python, which a graph cannot call.
    rounded = tf.constant([round_up(x) for x in range(greatest + 1)])
    beyond = (size + greatest - 1) // greatest * greatest
    return tf.where(
        size > greatest, beyond, tf.gather(rounded, tf.minimum(size, greatest))
    )
