"""Sums over the replicas of a distribution strategy, which share a global batch."""

import contextlib

import keras


def _replica_context():
    """TensorFlow's context of one replica among several, or `None`."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context


def sum_over_replicas(x):
    """The sum of a tensor over all replicas; the tensor itself where there is one."""
    context = _replica_context()
    return x if context is None else context.all_reduce("SUM", x)


@contextlib.contextmanager
def clipping_after_sum(optimizer):
    """Lets an optimizer clip the gradient of the global batch.

    By itself it clips what each replica found, before that is added up, and so
    takes another step than one device with the whole batch does.
    """
    context = _replica_context()
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    clips = inner.clipnorm or inner.global_clipnorm or inner.clipvalue
    if context is None or not clips:
        yield
        return
    clip, count = inner._clip_gradients, context.num_replicas_in_sync

    def clip_sum(gradients):
        clipped = clip([sum_over_replicas(gradient) for gradient in gradients])
        return [gradient / count for gradient in clipped]  # to be added up

    inner._clip_gradients = clip_sum
    try:
        yield
    finally:
        del inner._clip_gradients
