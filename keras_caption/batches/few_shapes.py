"""Padding of batches to few shapes, for each of which XLA compiles a step."""

from typing import Any

import tensorflow as tf

from keras_caption.compilation import SIZES, round_up


def padded_to_few_shapes(
    batch: dict[str, tf.Tensor], **shapes: tuple[int | None, ...]
) -> dict[str, tf.Tensor]:
    """A batch with zeros behind its tensors, which are padding to all that read them.

    Args:
        batch: dict of tensors; sizes that are not known when a pipeline is made are
            rounded up, see `keras_caption.compilation.round_up`.
        **shapes: By name, what tensors have instead: tuples of int, or of `None` for a
            size that is rounded up.
    """
    return {
        name: pad(values, shapes.get(name, tuple(values.shape)))
        for name, values in batch.items()
    }


def pad(
    values: tf.Tensor, shape: tuple[Any, ...], greatest: int | None = None
) -> tf.Tensor:
    """A tensor with zeros behind it.

    Args:
        values: Tensor.
        shape: tuple of int, int32 scalars, and `None` for sizes that are rounded up.
        greatest: int, what these are at most. Defaults to any.
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
    """What `keras_caption.compilation.round_up` returns, of an int32 scalar."""
    greatest = SIZES[-1]
    rounded = tf.constant([round_up(x) for x in range(greatest + 1)])
    beyond = (size + greatest - 1) // greatest * greatest
    return tf.where(
        size > greatest, beyond, tf.gather(rounded, tf.minimum(size, greatest))
    )
