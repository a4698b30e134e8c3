"""Replicas of TensorFlow's distribution strategies: sums and means over them.

On JAX, `keras.distribution` shards a batch that is one tensor to the program: there is
one replica, whose sums and means are those of the whole batch.
"""

import contextlib
import contextvars
from collections.abc import Iterable, Iterator
from typing import Any

import keras
from keras import ops

from keras_caption.base.arguments import Tensor


def replica_context() -> Any:
    """TensorFlow's replica context; `None` if there is only one replica."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context


def place_among_replicas() -> tuple[Tensor, int]:
    """The index of this replica, from 0, and the number of replicas."""
    context = replica_context()
    if context is None:
        return 0, 1
    return context.replica_id_in_sync_group, context.num_replicas_in_sync


def sum_over_replicas(x: Tensor) -> Tensor:
    """Sums a tensor over all replicas.

    Raises:
        NeedsSum: Within `given_sums`, if the sum is not given.
    """
    context = replica_context()
    if context is None:
        return x
    if (sums := _given.get()) is None:
        return context.all_reduce("SUM", x)
    try:
        return next(sums)
    except StopIteration:
        raise NeedsSum(x) from None


def part_of_mean(values: Tensor, weights: Tensor | None = None) -> Tensor:
    """Computes this replica's part of a mean over the global batch.

    The parts of all replicas sum to the mean, however unevenly rows and weights are
    distributed among them. Gradients sum likewise.

    Args:
        values: float, of any shape.
        weights: bool or float of that shape. Values of weight 0 are ignored, even if
            they are not finite. Defaults to `None`, the same weight for all.

    Returns:
        float32 scalar; 0 if all weights are.
    """
    values = ops.cast(values, "float32")
    if weights is None:
        count = ops.cast(ops.size(values), "float32")
    else:
        weights = ops.cast(weights, "float32")
        values, count = ops.where(weights != 0, values * weights, 0.0), ops.sum(weights)
    return ops.sum(values) / ops.maximum(sum_over_replicas(count), 1e-9)


class NeedsSum(Exception):  # noqa: N818, as it is no error
    """A sum over replicas is needed that a compiled function cannot take.

    Attributes:
        part: Tensor, this replica's part of the sum.
    """

    def __init__(self, part: Tensor):
        super().__init__()
        self.part = part


@contextlib.contextmanager
def given_sums(sums: Iterable[Tensor]) -> Iterator[None]:
    """Gives what `sum_over_replicas` returns in a block, call by call."""
    token = _given.set(iter(sums))
    try:
        yield
    finally:
        _given.reset(token)


_given: contextvars.ContextVar[Iterator[Tensor] | None] = contextvars.ContextVar(
    "given sums", default=None
)
