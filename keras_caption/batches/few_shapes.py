"""Padding of batches to few shapes, for each of which XLA compiles a step."""

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


def pad(values: tf.Tensor, shape: tuple[int | None, ...]) -> tf.Tensor:
    """A tensor with zeros behind it, of a shape whose `None` are rounded up."""
    now = tf.shape(values)
    sizes = tf.stack(
        [round_up_in_graph(now[i]) if x is None else x for i, x in enumerate(shape)]
    )
    behind = sizes - now
    return tf.pad(values, tf.stack([tf.zeros_like(behind), behind], axis=1))


def round_up_in_graph(size: tf.Tensor) -> tf.Tensor:
    """What `keras_caption.compilation.round_up` returns, of an int32 scalar."""
    greatest = SIZES[-1]
    rounded = tf.constant([round_up(x) for x in range(greatest + 1)])
    beyond = (size + greatest - 1) // greatest * greatest
    return tf.where(
        size > greatest, beyond, tf.gather(rounded, tf.minimum(size, greatest))
    )
