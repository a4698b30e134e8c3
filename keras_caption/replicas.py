"""Replicas of TensorFlow's distribution strategies: their number, sums over them."""

from typing import Any

import keras

from keras_caption.arguments import Tensor


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
    """Sums a tensor over all replicas."""
    context = replica_context()
    return x if context is None else context.all_reduce("SUM", x)
