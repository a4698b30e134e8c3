"""All overrides of private methods of Keras.

Written for Keras 3.15. Each override says what goes wrong without it, which test fails
then, and what would make it unnecessary; `tests/test_keras_overrides.py` fails if Keras
no longer has an overridden method, or if a class outside this module overrides one.
"""

import contextlib
import contextvars
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import keras
from keras import ops, tree

from keras_caption.base.arguments import Tensor
from keras_caption.base.compilation import JitSwitch
from keras_caption.base.replicas import replica_context, sum_over_replicas

if TYPE_CHECKING:
    from keras import Model as _KerasModel  # a mixin has what its models have
else:
    _KerasModel = object


class OverriddenModel(JitSwitch, _KerasModel):
    """What `keras_caption.models.replica_training.ReplicaTraining` overrides.

    `_convert_input_args`, `_allow_non_tensor_positional_args`: Keras 3.15 takes tensors
    and arrays alone. Without the override, a batch with a list of ids, which the model
    does not read, is refused (`test_keras_overrides.py`). Unnecessary once a public
    argument of `keras.layers.Layer` disables that, as functional models do.

    `_resolve_auto_jit_compile`: Keras 3.15 decides on `jit_compile="auto"` when a model
    is compiled, saves what it decided on, and never compiles under a strategy. Without
    the override, a model trained on a CPU and loaded on a GPU would run there without
    XLA (`test_compilation.py`). Unnecessary once Keras keeps `"auto"`.

    `_maybe_symbolic_build`: to get the shapes of a batch, `fit` of Keras 3.15 averages
    a batch over the replicas. Without the override, it fails for batches that hold a
    bool, and on several workers (`training/test_strategies.py`, as below). Unnecessary
    once Keras takes the batch of one replica.

    `_make_function`: on several workers, `fit` of Keras 3.15 averages logs along an
    axis that scalars lack. Without the override, it fails. Unnecessary once
    `reduce_per_replica` averages scalars. And Keras compiles the step of all replicas
    together by XLA, which fails. Unnecessary once it compiles each one's.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True

    @property
    def _has_replicas(self):
        """Whether there is a strategy; that of TPUs compiles by itself."""
        if keras.backend.backend() != "tensorflow" or not self._distribute_strategy:
            return False
        import tensorflow as tf

        return not isinstance(self._distribute_strategy, tf.distribute.TPUStrategy)

    def _resolve_auto_jit_compile(self):
        return "auto"

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

    def _make_function(self, step_function, **kwargs):
        def with_axis(data):
            logs = step_function(data)
            return {name: ops.reshape(log, (1,)) for name, log in logs.items()}

        chosen = with_axis if self._has_several_workers() else step_function
        setting = self.jit_setting
        try:
            if self._has_replicas:  # what each computes is compiled, see `on_replica`
                self.jit_setting = False
            return super()._make_function(chosen, **kwargs)
        finally:
            self.jit_setting = setting

    def _has_several_workers(self):
        if keras.backend.backend() != "tensorflow":
            return False
        import tensorflow as tf

        strategy = self._distribute_strategy
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            return False
        tasks = strategy.cluster_resolver.cluster_spec().as_dict().values()
        return sum(map(len, tasks)) > 1


def clip_after_sum(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer clip the gradient of the global batch.

    `_clip_gradients`: an optimizer of Keras 3.15 clips the gradients of the replicas
    before it sums them. Without the override, the step of several replicas differs
    from that of one device with the whole batch (`training/test_strategies.py`).
    Unnecessary once Keras clips the sum.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    clip = functools.partial(type(inner)._clip_gradients, inner)

    def clip_sum(gradients):
        context = replica_context()
        clips = inner.clipnorm or inner.global_clipnorm or inner.clipvalue
        if context is None or not clips:
            return clip(gradients)
        clipped = clip(context.all_reduce("SUM", list(gradients)))
        return [g / context.num_replicas_in_sync for g in clipped]  # Keras sums them

    inner._clip_gradients = clip_sum


def sum_over_several(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer sum no gradients if there is one replica.

    `_all_reduce_sum_gradients`: Keras 3.15 sums them over one replica too, by an
    operation with a gradient of its own. Without the override, TensorFlow keeps the
    graph of the training step for that gradient, as long as the process runs
    (`training/test_training.py`). Unnecessary once Keras sums over several only.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    sum_all = functools.partial(type(inner)._all_reduce_sum_gradients, inner)

    def sum_several(pairs):
        return pairs if replica_context() is None else sum_all(pairs)

    inner._all_reduce_sum_gradients = sum_several


def skip_together(optimizer: keras.optimizers.LossScaleOptimizer) -> None:
    """Makes a `LossScaleOptimizer` skip a step if any replica overflows.

    `check_finite`: Keras 3.15 checks the gradient of the first replica only. Without
    the override, an overflow on another replica makes weights infinite or NaN
    (`training/test_strategies.py`). Unnecessary once Keras checks the sum.
    """

    def all_finite(gradients):
        finite = type(optimizer).check_finite(optimizer, gradients)
        overflows = ops.cast(ops.logical_not(finite), "float32")
        return sum_over_replicas(overflows) < 0.5

    optimizer.check_finite = all_finite


def fuse_adam(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes Adam update each variable by one operation of TensorFlow.

    `update_step`, `_backend_update_step`: Adam of Keras 3.15 takes some twenty
    operations for a variable, which are half of the time that a training step is traced
    for and, without XLA, of what is launched on a GPU one by one. The formula is the
    same (`test_keras_overrides.py`). Unnecessary once Keras uses `ResourceApplyAdam`.
    """
    import tensorflow as tf

    adam = getattr(optimizer, "inner_optimizer", optimizer)
    plain = type(adam).update_step is keras.optimizers.Adam.update_step
    in_float32 = all(v.dtype == "float32" for v in adam._trainable_variables)
    if not plain or adam.amsgrad or not in_float32:
        return

    def update_all(gradients, variables, learning_rate):
        step = tf.cast(adam.iterations.value + 1, "float32")
        corrected = tf.sqrt(1 - adam.beta_2**step) / (1 - adam.beta_1**step)
        rate = tf.cast(learning_rate, "float32") * corrected
        type(adam)._backend_update_step(adam, gradients, variables, rate)

    def update_step(gradient, variable, rate):
        place = adam._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=adam._momentums[place].value.handle,
            v=adam._velocities[place].value.handle,
            beta1_power=0.0,  # the rate is corrected for them
            beta2_power=0.0,
            lr=rate,
            beta1=adam.beta_1,
            beta2=adam.beta_2,
            epsilon=adam.epsilon,
            grad=tf.cast(gradient, "float32"),
        )

    adam._backend_update_step, adam.update_step = update_all, update_step


def vary_seeds(model: keras.Model) -> None:
    """Makes the layers of a model sample different random numbers on every replica.

    `SeedGenerator.next`, of a layer's `_seed_generators`: in Keras 3.15, the state of a
    generator is the same on all replicas. Without the override, so are the dropout
    masks (`training/test_strategies.py`). Unnecessary once Keras mixes the index of the
    replica into the seed.
    """
    for layer in model._flatten_layers():
        for generator in layer._seed_generators:
            generator.next = functools.partial(next_seed, generator)


def next_seed(generator: keras.random.SeedGenerator, ordered: bool = True) -> Tensor:
    """The next seed of a generator, a different one on every replica."""
    seed = type(generator).next(generator, ordered)
    context = replica_context()
    if context is None:
        return seed
    index = ops.cast(context.replica_id_in_sync_group, seed.dtype)
    return seed + ops.stack([index * 2654435761, ops.zeros_like(index)])


_budget: contextvars.ContextVar[Any]
_budget = contextvars.ContextVar("budget", default=None)


@contextlib.contextmanager
def bounded_weights(budget: Any) -> Iterator[None]:
    """Refuses, before they are allocated, weights that are not within a budget.

    `keras.Layer.add_weight`, which is public: Keras 3.15 makes a model of whatever size
    its configuration says before it opens the weights. Without the override, a file of
    a kilobyte takes any memory, or hours for millions of layers
    (`formats/test_binary_files.py`). Unnecessary once Keras compares both first.
    """
    original = keras.Layer.add_weight

    @functools.wraps(original)
    def add_weight(self, shape=None, *args, **kwargs):
        budget = _budget.get()
        if budget is not None:
            budget.spend(shape)
        return original(self, shape, *args, **kwargs)

    keras.Layer.add_weight = add_weight
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)
        keras.Layer.add_weight = original
