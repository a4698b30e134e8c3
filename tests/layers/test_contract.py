"""What every public layer does: the contract of Keras's layers, and masks.

Constructor arguments are attributes, configs round-trip, dtype policies are followed,
masked inputs are ignored, and saved layers load on every backend installed.
"""

import dataclasses
import importlib.util
import inspect
import itertools
import os
import subprocess
import sys
import typing
from collections.abc import Callable

import jaxtyping
import keras
import numpy as np
import pytest
from conftest import PROJECT, random_boxes
from keras.src.testing import TestCase

from keras_caption import layers

ITEMS = (2, 6, 8)
BOXES = (2, 6, 4)
HEADS = (2, 2, 6, 4)
GRID = (2, 3, 3, 8)
VALID = np.arange(6) < np.array([[6], [3]])


@dataclasses.dataclass
class Case:
    """How a layer is made and called.

    Attributes:
        arguments: Function of a dtype policy that returns constructor arguments.
        inputs: dict from the names of the inputs to their shapes.
        masked: dict from the name of a mask to the names of the inputs it masks.
    """

    arguments: Callable
    inputs: dict
    masked: dict = dataclasses.field(default_factory=dict)


def attention(dtype, **sockets):
    return layers.MultiHeadAttention(2, 4, dtype=dtype, **sockets)


def sockets(dtype):
    return {
        "query_norm": "instance",
        "key_norm": keras.layers.LayerNormalization(dtype=dtype),
        "norm_affine": True,
        "dropout": 0.1,
        "bias": layers.GeometryBias(2, dtype=dtype),
        "memory": layers.AreaMemory(combined_features=True, dtype=dtype),
        "temperature": layers.LengthTemperature(dtype=dtype),
        "gate": layers.AttentionOnAttention(dtype=dtype),
        "output_projection": False,
    }


def heads(dtype):
    return {"num_heads": 2, "key_dim": 4}


def areas(dtype):
    return {
        "max_height": 2,
        "max_width": 2,
        "grid_width": 3,
        "combined_features": True,
        "mean_values": True,
    }


CASES = {
    "AdditiveScore": Case(lambda dtype: {}, {"queries": HEADS, "keys": HEADS}),
    "AreaAttention": Case(
        lambda dtype: {
            **heads(dtype),
            "memory": layers.AreaMemory(**areas(dtype), dtype=dtype),
        },
        {"query": ITEMS},
        {"query_mask": ["query"]},
    ),
    "AreaMemory": Case(areas, {"keys": HEADS, "values": HEADS}),
    "AttentionOnAttention": Case(
        lambda dtype: {"dropout": 0.1}, {"attended": ITEMS, "query": ITEMS}
    ),
    "AttentionPooling": Case(
        lambda dtype: {"hidden_dim": 12, "output_dim": 10, "dropout": 0.2},
        {"inputs": ITEMS},
        {"mask": ["inputs"]},
    ),
    "BoxEncoding": Case(
        lambda dtype: {"max_wavelength": 1e3}, {"inputs": ITEMS, "boxes": BOXES}
    ),
    "CellBoxes": Case(lambda dtype: {}, {"grid": GRID}),
    "CoAttentionBlock": Case(
        lambda dtype: {
            "attention": attention(dtype),
            "feedforward_dim": 16,
            "guided_attention": attention(dtype),
            "dropout": 0.2,
        },
        {"inputs": ITEMS, "memory": ITEMS},
        {"mask": ["inputs"], "memory_mask": ["memory"]},
    ),
    "FeedForward": Case(
        lambda dtype: {"hidden_dim": 16, "dropout": 0.2}, {"inputs": ITEMS}
    ),
    "GeometryAwareSelfAttention": Case(
        lambda dtype: {
            **heads(dtype),
            "bias": layers.GeometryBias(2, signed=True, dtype=dtype),
        },
        {"query": ITEMS, "boxes": BOXES},
        {"query_mask": ["query", "boxes"]},
    ),
    "GeometryBias": Case(
        lambda dtype: {
            "num_heads": 2,
            "kind": "content_independent+query+key",
            "geometry_dim": 4,
        },
        {"query": ITEMS, "key": ITEMS, "boxes": BOXES},
    ),
    "GridEncoding": Case(lambda dtype: {}, {"inputs": GRID}),
    "InstanceNormalization": Case(
        lambda dtype: {"affine": True, "epsilon": 1e-4, "centred": False},
        {"inputs": ITEMS},
        {"mask": ["inputs"]},
    ),
    "LengthTemperature": Case(lambda dtype: {"length": 5}, {"keys": HEADS}),
    "MatrixDense": Case(lambda dtype: {"units": 4}, {"inputs": ITEMS}),
    "MultiHeadAttention": Case(
        lambda dtype: {**heads(dtype), **sockets(dtype)},
        {"query": ITEMS, "boxes": BOXES},
        {"query_mask": ["query", "boxes"]},
    ),
    "NormalizedSelfAttention": Case(
        lambda dtype: {**heads(dtype), "query_norm": "instance"},
        {"query": ITEMS},
        {"query_mask": ["query"]},
    ),
    "ProductScore": Case(lambda dtype: {}, {"queries": HEADS, "keys": HEADS}),
    "RefiningBlock": Case(
        lambda dtype: {
            "attention": attention(dtype),
            "feedforward_dim": 16,
            "dropout": 0.2,
        },
        {"inputs": ITEMS},
        {"mask": ["inputs"]},
    ),
    "SinePositionEncoding": Case(lambda dtype: {}, {"inputs": ITEMS}),
    "TransformerDecoderBlock": Case(
        lambda dtype: {
            "self_attention": attention(dtype),
            "cross_attention": attention(dtype),
            "feedforward_dim": 16,
            "dropout": 0.2,
            "norm_position": "pre",
            "activation": "gelu",
        },
        {"inputs": (4, 6, 8), "memory": ITEMS},
        {"memory_mask": ["memory"]},
    ),
    "TransformerEncoderBlock": Case(
        lambda dtype: {
            "attention": attention(dtype),
            "feedforward_dim": 16,
            "dropout": 0.2,
            "norm": "unbiased",
            "activation": "swish",
            "activation_dropout": 0.3,
        },
        {"inputs": ITEMS},
        {"mask": ["inputs"]},
    ),
    "UnbiasedLayerNormalization": Case(lambda dtype: {}, {"inputs": ITEMS}),
    "WordEmbedding": Case(
        lambda dtype: {"vocabulary_size": 9, "dim": 4, "scaled": False},
        {"tokens": (2, 6)},
    ),
}
# They only make the default `bias`, which is an attribute.
SHORTHANDS = {"GeometryAwareSelfAttention": {"kind", "geometry_dim", "signed"}}


def make(name, dtype=None):
    keras.utils.set_random_seed(0)
    return getattr(layers, name)(**CASES[name].arguments(dtype), dtype=dtype)


def sample_inputs(name):
    """Inputs of a layer, and its masks, NumPy arrays by name."""
    rng = np.random.default_rng(0)
    inputs = {}
    for key, shape in CASES[name].inputs.items():
        if key == "boxes":
            inputs[key] = random_boxes(rng, *shape[:-1])
        elif key == "tokens":
            inputs[key] = rng.integers(0, 9, shape).astype("int32")
        else:
            inputs[key] = rng.normal(size=shape).astype("float32")
    return inputs, dict.fromkeys(CASES[name].masked, VALID)


def as_arrays(outputs):
    return [
        keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
        for x in keras.tree.flatten(outputs)
    ]


def assert_all_close(outputs, expected, **tolerances):
    for output, other in zip(as_arrays(outputs), as_arrays(expected), strict=True):
        np.testing.assert_allclose(output, other, **tolerances)


def test_every_public_layer_has_a_case():
    public = (getattr(layers, name) for name in layers.__all__)
    assert {x.__name__ for x in public if inspect.isclass(x)} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_layer_does_what_keras_expects(name):
    inputs, masks = sample_inputs(name)
    shapes = {f"{key}_shape": x.shape for key, x in inputs.items()}
    dtypes = {f"{key}_shape": str(x.dtype) for key, x in inputs.items()}
    if len(inputs) == 1:
        [shapes], [dtypes] = shapes.values(), dtypes.values()
    TestCase("run_layer_test").run_layer_test(
        lambda dtype=None: make(name, dtype),
        {},
        input_shape=shapes,
        input_dtype=dtypes,
        call_kwargs=masks,
        run_training_check=False,  # for layers of one input; models test training
    )


def assert_fits(x, hint, sizes):
    """Compares an array with its type hint; sizes of one name must be the same."""
    alternatives = [
        (kind.dtypes, kind.dim_str.split())
        for kind in (typing.get_args(hint) or [hint])
        if inspect.isclass(kind) and issubclass(kind, jaxtyping.AbstractArray)
    ]
    [(dtypes, names)] = [
        (dtypes, names)
        for dtypes, names in alternatives
        if names[:1] == ["..."] or len(names) == x.ndim
    ]
    assert str(x.dtype) in dtypes
    if names[:1] == ["..."]:
        names = ["_"] * (x.ndim + 1 - len(names)) + names[1:]
    for name, size in zip(names, x.shape, strict=True):
        expected = int(name) if name.isdigit() else sizes.setdefault(name, size)
        assert name == "_" or size == expected, name


@pytest.mark.parametrize("name", CASES)
def test_type_hints_say_dtype_and_shape(name):
    inputs, masks = sample_inputs(name)
    layer, sizes = make(name), {}
    hints = typing.get_type_hints(layer.call)
    for key, x in {**inputs, **masks}.items():
        assert_fits(x, hints[key], sizes)
    if name != "AreaMemory":  # returns two or three tensors
        outputs = layer(**inputs, **masks)
        assert_fits(keras.ops.convert_to_numpy(outputs), hints["return"], sizes)


@pytest.mark.parametrize("name", CASES)
def test_constructor_arguments_are_attributes(name):
    arguments = CASES[name].arguments(None)
    layer = getattr(layers, name)(**arguments)
    parameters = inspect.signature(getattr(layers, name)).parameters.values()
    named = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
    for parameter in named - SHORTHANDS.get(name, set()):
        value = getattr(layer, parameter)
        if parameter in arguments and not isinstance(value, keras.layers.Layer):
            assert value == arguments[parameter]


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].masked])
def test_masked_inputs_are_ignored(name):
    inputs, masks = sample_inputs(name)
    layer = make(name)
    expected = layer(**inputs, **masks)
    for key in itertools.chain(*CASES[name].masked.values()):
        garbage = 0.0 if key == "boxes" else 1e3
        inputs[key] = np.where(VALID[..., None], inputs[key], np.float32(garbage))
    outputs = layer(**inputs, **masks)
    if {"mask", "query_mask"} & {*masks} and len(outputs.shape) == 3:
        # Outputs of padding are of no interest.
        outputs, expected = outputs[VALID], expected[VALID]
    assert_all_close(outputs, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_close_to_single(name, dtype):
    inputs, masks = sample_inputs(name)
    layer, half = make(name), make(name, dtype)
    expected = layer(**inputs, **masks)
    half(**inputs, **masks)
    half.set_weights(layer.get_weights())
    assert_all_close(half(**inputs, **masks), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_late_positions_are_exact_in_half_precision(dtype):
    items = np.zeros((1, 1000, 64), "float32")
    late = layers.SinePositionEncoding(dtype=dtype)(items)
    assert_all_close(late, layers.SinePositionEncoding()(items), atol=0.01)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder of models of one layer each with inputs, and their outputs by name."""
    folder, outputs = tmp_path_factory.mktemp("layers"), {}
    for name in CASES:
        inputs, masks = sample_inputs(name)
        symbolic = {
            key: keras.Input(batch_shape=x.shape, dtype=str(x.dtype), name=key)
            for key, x in (inputs | masks).items()
        }
        model = keras.Model(symbolic, make(name)(**symbolic))
        model.save(folder / f"{name}.keras")
        np.savez(folder / f"{name}.npz", **inputs, **masks)
        outputs[name] = as_arrays(model(inputs | masks))
    return folder, outputs


PROGRAM = """
import pathlib
import sys

sys.modules["tensorflow"] = None
import keras
import numpy as np

import keras_caption

assert keras.backend.backend() == sys.argv[2]
for path in pathlib.Path(sys.argv[1]).glob("*.keras"):
    model = keras.models.load_model(path)
    outputs = model.predict_on_batch(dict(np.load(path.with_suffix(".npz"))))
    np.savez(path.with_suffix(f".{sys.argv[2]}.npz"), *keras.tree.flatten(outputs))
"""


def test_saved_layers_load(saved):
    folder, expected = saved
    for name, outputs in expected.items():
        inputs, masks = sample_inputs(name)
        loaded = keras.models.load_model(folder / f"{name}.keras")
        assert_all_close(loaded(inputs | masks), outputs, atol=1e-6)


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_saved_layers_load_on_other_backends(saved, backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    folder, expected = saved
    subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), backend],
        cwd=PROJECT,
        check=True,
        env={**os.environ, "KERAS_BACKEND": backend},
    )
    for name in CASES:
        with np.load(folder / f"{name}.{backend}.npz") as outputs:
            loaded = [outputs[key] for key in outputs.files]
        assert_all_close(loaded, expected[name], atol=1e-5, rtol=1e-4)
