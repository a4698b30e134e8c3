"""Training on the replicas of a distribution strategy, which share a global batch."""

import functools

import keras
from keras import ops, tree


class ReplicaTraining:
    """Mixin of models that train under a distribution strategy of TensorFlow.

    Gradients are clipped after they are added up, not before; an overflow in half
    precision on one replica skips the step of all; and each replica has dropout masks
    of its own, not all the same. And two things that Keras's own `fit` does fail for
    batches with masks, or on several workers, and are done otherwise: to learn the
    shapes of a batch it averages one over the replicas, and it averages the logs of
    workers along an axis that scalars lack.
    """

    def make_train_function(self, force=False):
        clip_after_sum(self.optimizer)
        if isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer):
            skip_together(self.optimizer)
        draw_apart(self)
        return super().make_train_function(force)

    def _make_function(self, step_function, **kwargs):
        def with_axis(data):
            logs = step_function(data)
            return {name: ops.reshape(log, (1,)) for name, log in logs.items()}

        chosen = with_axis if self._has_several_workers() else step_function
        return super()._make_function(chosen, **kwargs)

    def _has_several_workers(self):
        if keras.backend.backend() != "tensorflow":
            return False
        import tensorflow as tf

        strategy = self._distribute_strategy
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return False
        tasks = strategy.cluster_resolver.cluster_spec().as_dict().values()
        return sum(map(len, tasks)) > 1

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        strategy = self._distribute_strategy
        if strategy is None or iterator is None:
            super()._maybe_symbolic_build(iterator, data_batch)
            return
        _, _, batches = next(iter(iterator))
        part = tree.map_structure(
            lambda x: strategy.experimental_local_results(x)[0], next(batches)
        )
        with strategy.scope():
            self._symbolic_build(data_batch=part)


def _replica_context():
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
    context = _replica_context()
    if context is None:
        return 0, 1
    return context.replica_id_in_sync_group, context.num_replicas_in_sync


def sum_over_replicas(x):
    """The sum of a tensor over all replicas; the tensor itself where there is one."""
    context = _replica_context()
    return x if context is None else context.all_reduce("SUM", x)


def clip_after_sum(optimizer):
    """Makes an optimizer clip the gradient of the global batch.

    By itself it clips what each replica found, before that is added up, and so
    takes another step than one device with the whole batch does.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    clip = functools.partial(type(inner)._clip_gradients, inner)

    def clip_sum(gradients):
        context = _replica_context()
        clips = inner.clipnorm or inner.global_clipnorm or inner.clipvalue
        if context is None or not clips:
            return clip(gradients)
        clipped = clip(context.all_reduce("SUM", list(gradients)))
        return [g / context.num_replicas_in_sync for g in clipped]  # to be added up

    inner._clip_gradients = clip_sum


def skip_together(optimizer):
    """Makes a `LossScaleOptimizer` skip a step where any replica overflows.

    By itself it asks the first one, whose gradients it takes for the sum.
    """

    def all_finite(gradients):
        finite = type(optimizer).check_finite(optimizer, gradients)
        overflows = ops.cast(ops.logical_not(finite), "float32")
        return sum_over_replicas(overflows) < 0.5

    optimizer.check_finite = all_finite


def draw_apart(model):
    """Makes the layers of a model draw other random numbers on every replica.

    By themselves they draw the same ones: the state of a random generator is the
    same on all replicas.
    """
    for layer in model._flatten_layers():
        for generator in layer._seed_generators:
            generator.next = functools.partial(_next_seed, generator)


def _next_seed(generator, ordered=True):
    seed = type(generator).next(generator, ordered)
    context = _replica_context()
    if context is None:
        return seed
    number = ops.cast(context.replica_id_in_sync_group, seed.dtype)
    return seed + ops.stack([number * 2654435761, ops.zeros_like(number)])
