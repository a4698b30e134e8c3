"""The private methods of Keras that the project overrides still exist."""

import importlib
import inspect
import pkgutil
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.base import keras_overrides
from keras_caption.models.replica_training import ReplicaTraining

SIGNATURES = {
    (keras.Model, "_make_function"): "(self, step_function)",
    (keras.Model, "_maybe_symbolic_build"): "(self, iterator=None, data_batch=None)",
    (keras.Model, "_symbolic_build"): "(self, iterator=None, data_batch=None)",
    (keras.Model, "_flatten_layers"): "(self, include_self=True, recursive=True)",
    (keras.optimizers.Optimizer, "_clip_gradients"): "(self, grads)",
    (keras.optimizers.Optimizer, "_all_reduce_sum_gradients"): "(self, grads_and_vars)",
    (keras.optimizers.LossScaleOptimizer, "check_finite"): "(self, grads)",
    (keras.random.SeedGenerator, "next"): "(self, ordered=True)",
}
ATTRIBUTES = (
    "_convert_input_args",
    "_allow_non_tensor_positional_args",
    "_distribute_strategy",
    "_seed_generators",
)


@pytest.mark.parametrize(("owner", "name"), SIGNATURES, ids=lambda x: str(x)[-25:])
def test_overridden_methods_have_the_signatures_of_keras_3_15(owner, name):
    signature = str(inspect.signature(getattr(owner, name)))
    assert signature == SIGNATURES[owner, name], f"keras {keras.__version__}"


def test_overridden_attributes_exist():
    model = keras.Model()
    for name in ATTRIBUTES:
        assert hasattr(model, name), f"keras {keras.__version__} has no {name}"


def test_keras_calls_the_overrides():
    """Checked in a training step: an override that is never called has no effect."""
    called = []

    class Watched(ReplicaTraining, keras.Sequential):
        def _make_function(self, step_function):
            called.append("_make_function")
            return super()._make_function(step_function)

        def _maybe_symbolic_build(self, *args, **kwargs):
            called.append("_maybe_symbolic_build")
            return super()._maybe_symbolic_build(*args, **kwargs)

    layers = [keras.Input((2,)), keras.layers.Dropout(0.5), keras.layers.Dense(1)]
    model = Watched(layers)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    model.compile(optimizer, "mse", run_eagerly=True)
    model.make_train_function()
    watched = [
        (optimizer.inner_optimizer, "_clip_gradients"),
        (optimizer.inner_optimizer, "_all_reduce_sum_gradients"),
        (optimizer, "check_finite"),
        (model.layers[0].seed_generator, "next"),
    ]
    for owner, name in watched:
        assert name in vars(owner), f"{name} is not overridden"
        setattr(owner, name, watch(getattr(owner, name), name, called))
    model.make_train_function = lambda: None  # which would apply the overrides again
    x = keras.ops.ones((1, 2))
    model.train_on_batch(x, x[:, :1])
    assert {name for _, name in watched} < set(called)
    assert {"_make_function", "_maybe_symbolic_build"} < set(called)


def test_fit_shuffles_arrays_alone_and_warns_of_nothing():
    seen = []

    class Trained(ReplicaTraining, keras.Sequential):
        def train_step(self, data):
            seen.append(np.array(data[0]))
            return super().train_step(data)

    model = Trained([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    x = np.arange(64.0)[:, None]
    with warnings.catch_warnings(action="error"):
        model.fit(tf.data.Dataset.from_tensors((x, x)), verbose=0)
    model.fit(x, x, batch_size=64, verbose=0)
    dataset, arrays = seen
    np.testing.assert_array_equal(dataset, x)
    np.testing.assert_array_equal(np.sort(arrays, axis=0), x)
    assert (arrays != x).any()


def test_a_batch_may_have_lists_that_a_model_does_not_read():
    class Named(keras_overrides.OverriddenModel, keras.Model):
        def call(self, inputs):
            return 2 * inputs["x"]

    batch = {"x": np.ones((2, 1), "float32"), "names": ["a.jpg", "b.jpg"]}
    np.testing.assert_array_equal(Named()(batch), [[2], [2]])


def test_adam_updates_a_variable_by_one_operation_as_keras_does():
    weights = []
    for fuse in (keras_overrides.fuse_adam, lambda optimizer: None):
        variable = keras.Variable([[1.0, -2.0], [0.5, 3.0]])
        adam = keras.optimizers.Adam(0.1, epsilon=1e-3)
        adam.build([variable])
        fuse(adam)
        update = tf.function(lambda x, adam=adam: adam.apply([x])).get_concrete_function
        update = update(tf.TensorSpec((2, 2)))
        for step in range(3):
            update(tf.constant([[0.1, 2.0], [-1.0, 0.0]]) * (step + 1))
        weights.append(variable.numpy())
        kinds = [x.type for x in update.graph.get_operations()]
        fused = kinds.count("ResourceApplyAdam")
        assert fused == (fuse is keras_overrides.fuse_adam)
    np.testing.assert_allclose(*weights, rtol=1e-5)


def watch(function, name, called):
    def watched(*args, **kwargs):
        called.append(name)
        return function(*args, **kwargs)

    return watched


def test_private_methods_of_keras_are_overridden_in_one_module():
    for module in pkgutil.walk_packages(kc.__path__, "keras_caption."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert overrides_outside(keras.layers.Layer) == set()

    class Captioner(kc.models.Captioner):
        def _compute_loss(self):
            pass

    Captioner.__module__ = "keras_caption.models.other"
    assert overrides_outside(kc.models.Captioner) == {(Captioner, "_compute_loss")}


def overrides_outside(base):
    """Private methods of Keras that classes outside `keras_overrides` override."""
    return {
        (part, name)
        for cls in subclasses(base)
        for part in cls.__mro__
        if part.__module__.startswith("keras_caption.")
        and part.__module__ != keras_overrides.__name__
        for name in vars(part)
        if name[0] == "_" and name[:2] != "__" and hasattr(keras.Model, name)
    }


def subclasses(cls):
    """A class and its subclasses, at any depth."""
    return {cls}.union(*map(subclasses, cls.__subclasses__()))
