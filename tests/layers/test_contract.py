"""What Keras expects of any layer, by Keras's own test."""

import inspect

import numpy as np
import pytest
from keras.src.testing import TestCase

from keras_caption import layers

ITEMS = (2, 6, 8)
BOXES = (2, 6, 4)
HEADS = (2, 2, 6, 4)


def attention(dtype=None, **sockets):
    return layers.MultiHeadAttention(2, 4, dtype=dtype, **sockets)


def encoder_block(dtype=None):
    return layers.TransformerEncoderBlock(attention(dtype), 16, dtype=dtype)


def decoder_block(dtype=None):
    return layers.TransformerDecoderBlock(
        attention(dtype), attention(dtype), 16, dtype=dtype
    )


def all_sockets(dtype=None):
    return attention(
        dtype,
        query_norm="instance",
        key_norm="layer",
        norm_affine=True,
        memory=layers.AreaMemory(combined_features=True, dtype=dtype),
        temperature=layers.LengthTemperature(dtype=dtype),
        gate=layers.AttentionOnAttention(dtype=dtype),
        output_projection=False,
    )


# How a layer is made, the shapes of its inputs, and its masks' names.
CASES = {
    "AreaAttention": (
        lambda **kwargs: layers.AreaAttention(2, 4, **kwargs),
        {"query": ITEMS},
        ["query_mask"],
    ),
    "AreaMemory": (
        lambda **kwargs: layers.AreaMemory(2, 2, 3, True, **kwargs),
        {"keys": HEADS, "values": HEADS},
        [],
    ),
    "AttentionOnAttention": (
        layers.AttentionOnAttention,
        {"attended": ITEMS, "query": ITEMS},
        [],
    ),
    "BoxEncoding": (layers.BoxEncoding, {"inputs": ITEMS, "boxes": BOXES}, []),
    "CellBoxes": (layers.CellBoxes, (2, 3, 3, 8), []),
    "FeedForward": (lambda **kwargs: layers.FeedForward(16, **kwargs), ITEMS, []),
    "GeometryAwareSelfAttention": (
        lambda **kwargs: layers.GeometryAwareSelfAttention(2, 4, **kwargs),
        {"query": ITEMS, "boxes": BOXES},
        ["query_mask"],
    ),
    "GeometryBias": (
        lambda **kwargs: layers.GeometryBias(
            2, "content_independent+query+key", 4, **kwargs
        ),
        {"query": ITEMS, "key": ITEMS, "boxes": BOXES},
        [],
    ),
    "GridEncoding": (layers.GridEncoding, (2, 3, 3, 8), []),
    "InstanceNormalization": (
        lambda **kwargs: layers.InstanceNormalization(affine=True, **kwargs),
        ITEMS,
        ["mask"],
    ),
    "LengthTemperature": (layers.LengthTemperature, HEADS, []),
    "MatrixDense": (lambda **kwargs: layers.MatrixDense(4, **kwargs), ITEMS, []),
    "MultiHeadAttention": (
        lambda dtype=None: all_sockets(dtype),
        {"query": ITEMS},
        ["query_mask"],
    ),
    "NormalizedSelfAttention": (
        lambda **kwargs: layers.NormalizedSelfAttention(2, 4, **kwargs),
        ITEMS,
        ["query_mask"],
    ),
    "RefiningBlock": (
        lambda dtype=None: layers.RefiningBlock(attention(dtype), 16, dtype=dtype),
        ITEMS,
        ["mask"],
    ),
    "TransformerDecoderBlock": (
        lambda dtype=None: decoder_block(dtype),
        {"inputs": (4, 6, 8), "memory": ITEMS},
        ["memory_mask"],
    ),
    "TransformerEncoderBlock": (
        lambda dtype=None: encoder_block(dtype),
        ITEMS,
        ["mask"],
    ),
    "UnbiasedLayerNormalization": (layers.UnbiasedLayerNormalization, ITEMS, []),
    "WordEmbedding": (
        lambda **kwargs: layers.WordEmbedding(9, 4, **kwargs),
        (2, 6),
        [],
    ),
}


def test_no_layer_is_forgotten():
    public = (getattr(layers, name) for name in layers.__all__)
    assert {x.__name__ for x in public if inspect.isclass(x)} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_layer_does_what_keras_expects(name):
    make, shapes, masks = CASES[name]
    dtype = "int32" if name == "WordEmbedding" else "float32"
    if isinstance(shapes, dict):
        shapes = {f"{key}_shape": shape for key, shape in shapes.items()}
        dtype = dict.fromkeys(shapes, dtype)
    valid = np.arange(6) < np.array([[6], [3]])
    TestCase("run_layer_test").run_layer_test(
        make,
        {},
        input_shape=shapes,
        input_dtype=dtype,
        call_kwargs=dict.fromkeys(masks, valid),
        run_training_check=False,  # it takes layers of one input; models train
    )
