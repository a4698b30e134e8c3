"""All overrides of private methods of Keras.

Written for Keras 3.15. Each override says what goes wrong without it and what would
make it unnecessary; `tests/test_keras_overrides.py` fails if Keras no longer has an
overridden method, or if a class outside this module overrides one.
"""

import contextlib
import contextvars
import functools
import math
from collections.abc import Iterator
from typing import Any

import keras
from keras import ops, tree
from keras.src.saving import saving_lib

from keras_caption.arguments import Tensor
from keras_caption.errors import InputError
from keras_caption.replicas import replica_context, sum_over_replicas


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


class ReplicaTraining:
    """Mixin of models that train under a distribution strategy of TensorFlow.

    `make_train_function`, which is public, applies `clip_after_sum`, `skip_together`
    and `vary_seeds` to the optimizer and the layers, and refuses an optimizer that
    accumulates gradients. `fit`, which is public too, asks Keras to shuffle arrays
    only: of other data it warns that it does not.

    `_maybe_symbolic_build`: to get the shapes of a batch, `fit` of Keras 3.15 averages
    a batch over the replicas. Without the override, it fails for batches that hold a
    bool, and on several workers. Unnecessary once Keras takes the batch of one
    replica.

    `_make_function`: on several workers, `fit` of Keras 3.15 averages logs along an
    axis that scalars lack. Without the override, it fails. Unnecessary once
    `reduce_per_replica` averages scalars.
    """

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
        return super().make_train_function(force)

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
