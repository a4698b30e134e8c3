"""All overrides of private methods of Keras.

Written for Keras 3.15. Each override says what goes wrong without it and what would
make it unnecessary; `tests/test_keras_overrides.py` fails if Keras no longer has an
overridden method, or if a class outside this module overrides one.
"""

import contextlib
import contextvars
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import keras
from keras import ops, tree
from keras.src.saving import saving_lib

from keras_caption.base.arguments import Tensor
from keras_caption.base.compilation import JitSwitch, noting_compilations
from keras_caption.base.errors import InputError
from keras_caption.base.replicas import (
    NeedsSum,
    given_sums,
    replica_context,
    sum_over_replicas,
)

if TYPE_CHECKING:
    from keras import Model as _TrainedModel  # a mixin has what its models have
else:
    _TrainedModel = object


class CalledWithDicts:
    """Mixin of models that are called with a dict and read only some of its keys.

    `_convert_input_args`, `_allow_non_tensor_positional_args`: Keras 3.15 converts all
    inputs of a model to tensors of one float type. Without the override, the keys that
    the model does not read must be numeric too. Unnecessary once a public argument of
    `keras.layers.Layer` disables the conversion, as functional models do.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True


class ReplicaTraining(JitSwitch, _TrainedModel):
    """Mixin of models that train on TensorFlow, with its strategies, and on JAX.

    `make_train_function`, which is public, applies `clip_after_sum`, `skip_together`,
    `vary_seeds` and `fuse_adam` to the optimizer and the layers, and refuses an
    optimizer that accumulates gradients. It builds the optimizer, too: Keras 3.15 does
    so within the first step, which is then traced twice, in twice the time.
    `train_step`, also public, logs the loss of the global batch, where Keras averages
    those of replicas with unequal rows, and compiles what each replica computes alone.
    `fit`, which is public too, asks Keras to shuffle arrays only: of other data it
    warns that it does not.

    `_resolve_auto_jit_compile`: Keras 3.15 decides on `jit_compile="auto"` when a model
    is compiled, saves what it decided on, and never compiles under a strategy. Without
    the override, a model trained on a CPU and loaded on a GPU would run there without
    XLA. Unnecessary once Keras keeps `"auto"`.

    `_maybe_symbolic_build`: to get the shapes of a batch, `fit` of Keras 3.15 averages
    a batch over the replicas. Without the override, it fails for batches that hold a
    bool, and on several workers. Unnecessary once Keras takes the batch of one
    replica.

    `_make_function`: on several workers, `fit` of Keras 3.15 averages logs along an
    axis that scalars lack. Without the override, it fails. Unnecessary once
    `reduce_per_replica` averages scalars. And Keras compiles the step of all replicas
    together by XLA, which fails. Unnecessary once it compiles each one's.
    """

    train_function: Any  # of `make_train_function`

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        if hasattr(x, "element_spec"):  # a tf.data dataset, of a strategy or not
            kwargs.setdefault("shuffle", False)
        return super().fit(x, *args, **kwargs)

    def make_train_function(self, force: bool = False) -> Any:
        refuse_accumulation(self.optimizer)
        clip_after_sum(self.optimizer)
        if isinstance(self.optimizer, keras.optimizers.LossScaleOptimizer):
            skip_together(self.optimizer)
        vary_seeds(self)
        if keras.backend.backend() == "tensorflow":
            if not self.optimizer.built:
                with self.distribute_strategy.scope():
                    self.optimizer.build(self.trainable_variables)
            fuse_adam(self.optimizer)
        before = self.train_function
        super().make_train_function(force)
        if self.jit_compile and self.train_function is not before:
            shapes = tuple(tuple(v.shape) for v in self.variables)
            described = type(self).__qualname__, shapes
            self.train_function = noting_compilations(self.train_function, described)

    def train_step(self, *args: Any) -> Any:
        if not self.compiles_replicas and replica_context() is None:
            return super().train_step(*args)
        inputs, targets, weights = keras.utils.unpack_x_y_sample_weight(*args)
        scale = self.optimizer.scale_loss(1.0)
        has_metrics = self._compile_metrics is not None

        def loss_of(inputs, targets, weights):
            outputs = self(inputs, training=True)
            loss = self.compute_loss(inputs, targets, outputs, weights, training=True)
            return loss * scale, (loss, outputs if has_metrics else None)

        gradients, (loss, outputs) = self.gradients(loss_of, inputs, targets, weights)
        self.descend(gradients)
        rows = ops.shape(tree.flatten(inputs)[0])[0]
        self._loss_tracker.update_state(sum_over_replicas(loss), sample_weight=rows)
        return self.compute_metrics(inputs, targets, outputs, weights)

    @property
    def step_variables(self) -> tuple[list[Any], ...]:
        """The variables whose values a step on JAX takes and returns, four lists."""
        return (
            self.trainable_variables,
            self.non_trainable_variables,
            self.optimizer.variables,
            self.metrics_variables,
        )

    def stateless(self, function: Callable, *args: Any) -> Any:
        """Calls a function that reads and assigns variables, as a step of the backend.

        Args:
            function: Function of a nested structure of tensors.
            *args: As `train_step` takes them: the structure; on JAX after the values of
                `step_variables`.

        Returns:
            The result; on JAX, the result and the new values of the variables.
        """
        if len(args) == 1:
            return function(*args)
        state, data = args
        groups = self.step_variables
        values = zip(itertools.chain(*groups), itertools.chain(*state), strict=True)
        with keras.StatelessScope([*values]) as scope:
            result = function(data)
        return result, tuple([scope.get_current_value(v) for v in x] for x in groups)

    def gradients(self, loss_of: Callable, *args: Any) -> tuple[list[Any], Any]:
        """Gradients of a loss by the trainable variables.

        Args:
            loss_of: Function of `args` that returns the loss, a scalar, and a nested
                structure of tensors or `None`.
            *args: Nested structures of tensors.

        Returns:
            A list of tensors, and the nested structure.
        """
        if keras.backend.backend() == "jax":
            return self._gradients_on_jax(loss_of, *args)
        import tensorflow as tf

        def differentiate(*args):
            # Within `on_replica`, variables are tensors, which a tape does not watch.
            sources = [v.value for v in self.trainable_variables]
            with tf.GradientTape() as tape:
                tape.watch(sources)
                loss, more = loss_of(*args)
            zero = tf.UnconnectedGradients.ZERO
            return tape.gradient(loss, sources, unconnected_gradients=zero), more

        if self.compiles_replicas:
            return self.on_replica(differentiate, *args)
        with tf.GradientTape() as tape:
            loss, more = loss_of(*args)
        zero = tf.UnconnectedGradients.ZERO
        return tape.gradient(
            loss, self.trainable_variables, unconnected_gradients=zero
        ), more

    def _gradients_on_jax(self, loss_of, *args):
        import jax

        # `loss_of` is called in a scope of its own, which knows all it may read.
        trainable, *others = self.step_variables
        others = [*itertools.chain(*others)]
        values = [(v, v.value) for v in others]

        def differentiated(weights):
            trained = zip(trainable, weights, strict=True)
            with keras.StatelessScope([*trained, *values]) as scope:
                loss, more = loss_of(*args)
            return loss, (more, [scope.get_current_value(v) for v in others])

        differentiate = jax.grad(differentiated, has_aux=True)
        gradients, (more, changed) = differentiate([v.value for v in trainable])
        for variable, value in zip(others, changed, strict=True):
            variable.assign(value)
        return gradients, more

    def descend(self, gradients: list[Any]) -> None:
        """Updates the trainable variables by the optimizer."""
        if keras.backend.backend() != "jax":
            self.optimizer.apply(gradients, self.trainable_variables)
            return
        # `apply` scales losses of half precision by a condition that assigns variables.
        groups = self.trainable_variables, self.optimizer.variables
        weights, state = ([v.value for v in group] for group in groups)
        updated = self.optimizer.stateless_apply(state, gradients, weights)
        for group, values in zip(groups, updated, strict=True):
            for variable, value in zip(group, values, strict=True):
                variable.assign(value)

    def on_replica(self, function: Callable, *args: Any) -> Any:
        """Calls a function, which XLA compiles for this replica if it compiles any.

        TensorFlow 2.21 can neither sum over replicas within a function that XLA
        compiles, nor read, on CPUs, variables of another device. So the function gets
        the values of the variables; and where it sums over replicas, it is compiled up
        to that, the sum is taken, and it is compiled anew with the sum. Sums should
        come early: what is before them is computed again.

        Args:
            function: Function of nested structures of tensors, which may change
                variables that are not trained, such as the states of random generators.
            *args: Its arguments.
        """
        if not self.compiles_replicas:
            return function(*args)
        variables = [*self.variables, self.optimizer.iterations]
        sums: list[Any] = []
        while True:
            stage, completed = stage_of(function, variables)
            result, changed = stage([v.value for v in variables], sums, args)
            if completed:
                break
            sums.append(sum_over_replicas(result))
        for variable, value in zip(variables, changed, strict=True):
            if value is not None:
                variable.assign(value)
        return result

    @property
    def compiles_replicas(self):
        """Whether XLA compiles what each replica computes, not the whole step."""
        return self.jit_compile and self._has_replicas

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


def stage_of(function: Callable, variables: list) -> tuple[Callable, list]:
    """A function up to the first sum over replicas that is not given.

    Args:
        function: Of `ReplicaTraining.on_replica`.
        variables: What it reads and changes.

    Returns:
        A function, which XLA compiles, of the values of the variables, the sums that
        are given, and a tuple of arguments. It returns what `function` does, and the
        variables' new values, `None` for those that did not change; or this replica's
        part of the sum, and an empty list. And a list that is not empty once the former
        has been traced.
    """
    import tensorflow as tf

    completed = []

    def stage(values, sums, args):
        state = zip(variables, values, strict=True)
        with keras.StatelessScope([*state]) as scope, given_sums(sums):
            try:
                result = function(*args)
            except NeedsSum as need:
                return need.part, []
        completed.append(True)
        new = [scope.get_current_value(v) for v in variables]
        changed = [
            x if x is not old else None for x, old in zip(new, values, strict=True)
        ]
        return result, changed

    return tf.function(stage, autograph=False, jit_compile=True), completed


def refuse_accumulation(optimizer: keras.optimizers.Optimizer) -> None:
    """Raises `InputError` if an optimizer accumulates gradients.

    Keras 3.15 averages the gradients of batches, whatever their numbers of tokens, and
    fails on several replicas.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if inner.gradient_accumulation_steps:
        raise InputError(
            "The optimizer has gradient_accumulation_steps="
            f"{inner.gradient_accumulation_steps}, which averages over batches and "
            "not over tokens: make it without, and train with larger batches or with "
            "`keras_caption.training.AccumulatingTrainer`."
        )


def clip_after_sum(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer clip the gradient of the global batch.

    `_clip_gradients`: an optimizer of Keras 3.15 clips the gradients of the replicas
    before it sums them. Without the override, the step of several replicas differs
    from that of one device with the whole batch. Unnecessary once Keras clips the sum.
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


def skip_together(optimizer: keras.optimizers.LossScaleOptimizer) -> None:
    """Makes a `LossScaleOptimizer` skip a step if any replica overflows.

    `check_finite`: Keras 3.15 checks the gradient of the first replica only. Without
    the override, an overflow on another replica makes weights NaN. Unnecessary once
    Keras checks the sum.
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
    same. Unnecessary once Keras uses `ResourceApplyAdam`.
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
    masks. Unnecessary once Keras mixes the index of the replica into the seed.
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


class Budget:
    """Weights that a model may make, twice those of its file and a few.

    Keras makes the weights of a quantized layer in floating point first.

    Args:
        weights: int, number of weights.
        elements: int, number of their elements together.
    """

    def __init__(self, weights: int, elements: int):
        self.weights = 2 * weights + SPARE_WEIGHTS
        self.elements = 2 * elements + SPARE_ELEMENTS

    def spend(self, shape: int | tuple[int, ...] | None) -> None:
        """Counts a new weight; raises `InputError` if there are too many."""
        self.weights -= 1
        self.elements -= shape if isinstance(shape, int) else math.prod(shape or ())
        if min(self.weights, self.elements) < 0:
            raise InputError("its configuration describes more weights than it has")


# What a file need not have: seeds, and weights that models have since it was saved.
SPARE_WEIGHTS, SPARE_ELEMENTS = 16, 2**16
_budget: contextvars.ContextVar[Budget | None]
_budget = contextvars.ContextVar("budget", default=None)


@contextlib.contextmanager
def bounded_weights(budget: Budget) -> Iterator[None]:
    """Refuses, before they are allocated, weights that are not within a budget.

    `keras.Layer.add_weight`, which is public: Keras 3.15 makes a model of whatever size
    its configuration says before it opens the weights. Without the override, a file of
    a kilobyte takes any memory, or hours for millions of layers. Unnecessary once Keras
    compares both first.
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


@contextlib.contextmanager
def quick_loading() -> Iterator[None]:
    """Loads models in less time.

    `saving_lib.get_attr_skipset`: Keras 3.15 looks its sets up by another name than it
    keeps them under, and so makes a layer to read the attributes of, for every layer
    that it loads. Without the override, loading takes a fifth longer. Unnecessary once
    Keras uses one name.
    """
    original = saving_lib.get_attr_skipset
    saving_lib.get_attr_skipset = functools.cache(original)
    try:
        yield
    finally:
        saving_lib.get_attr_skipset = original
