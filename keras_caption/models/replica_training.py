import itertools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree

from keras_caption.base.compilation import noting_compilations
from keras_caption.base.errors import InputError
from keras_caption.base.keras_overrides import (
    OverriddenModel,
    clip_after_sum,
    fuse_adam,
    skip_together,
    sum_over_several,
    vary_seeds,
)
from keras_caption.base.replicas import (
    NeedsSum,
    given_sums,
    replica_context,
    sum_over_replicas,
)


class ReplicaTraining(OverriddenModel):
    """Mixin of models that train on TensorFlow, with its strategies, and on JAX.

    `make_train_function`, which is public, applies `clip_after_sum`, `skip_together`,
    `vary_seeds`, `fuse_adam` and `sum_over_several` to the optimizer and the layers,
    and refuses an optimizer that accumulates gradients. It builds the optimizer, too:
    Keras 3.15 does so within the first step, which is then traced twice, in twice the
    time.
    `train_step`, also public, logs the loss of the global batch, where Keras averages
    those of replicas with unequal rows, and compiles what each replica computes alone.
    `fit`, which is public too, asks Keras to shuffle arrays only: of other data it
    warns that it does not.
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
            sum_over_several(self.optimizer)
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
