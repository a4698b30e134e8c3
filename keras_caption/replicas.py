"""What one replica of a distribution strategy of TensorFlow knows of the others."""

import keras


def replica_context():
    """TensorFlow's context of one replica among several, or `None`."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context


def place_among_replicas():
    """The number of this replica, from 0, and how many there are."""
    context = replica_context()
    if context is None:
        return 0, 1
    return context.replica_id_in_sync_group, context.num_replicas_in_sync


def sum_over_replicas(x):
    """The sum of a tensor over all replicas; the tensor itself if there is one."""
    context = replica_context()
    return x if context is None else context.all_reduce("SUM", x)
