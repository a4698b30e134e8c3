import keras
import numpy as np
import pytest
import reference
from conftest import random_boxes

from keras_caption.base.errors import InputError
from keras_caption.layers import (
    BoxEncoding,
    GeometryAwareSelfAttention,
    GeometryBias,
    relative_geometry,
)
from keras_caption.layers.geometry_bias import MANY_ITEMS

KINDS = ["content_independent", "query", "key", "content_independent+query+key"]


@pytest.mark.parametrize("signed", [False, True])
def test_relative_geometry_follows_eq_8(rng, signed):
    boxes = random_boxes(rng, 3, 6)
    out = np.array(relative_geometry(boxes, signed))
    for row in range(3):
        expected = reference.relative_geometry(boxes[row].astype("float64"), signed)
        np.testing.assert_allclose(out[row], expected, atol=1e-4)


def test_only_a_signed_geometry_knows_an_image_from_its_mirror_image(rng):
    boxes = random_boxes(rng, 1, 4)
    mirrored = boxes.copy()
    mirrored[..., 0], mirrored[..., 2] = 1 - boxes[..., 2], 1 - boxes[..., 0]
    for signed in (False, True):
        out, turned = (
            np.array(relative_geometry(b, signed)) for b in (boxes, mirrored)
        )
        # Of the direction, of twice its angle, and the sines of x.
        odd_in_x = [4, 7, 8, 9, 10, 11] if signed else []
        turned[..., odd_in_x] *= -1
        np.testing.assert_allclose(out, turned, atol=1e-4)
        assert np.abs(out[0, 0, 1, odd_in_x]).sum() > 0.1 or not signed


def test_the_papers_numbers_of_parameters_follow_from_the_default_size():
    bias = GeometryBias(8)
    bias.build((None, 36, 512), (None, 36, 512), (None, 36, 4))
    # Of four blocks: NG-SAN has 41.5M, SAN 40.20M.
    assert round(40.20 + 4 * bias.count_params() / 1e6, 2) == 41.51


@pytest.mark.parametrize("kind", KINDS)
def test_geometry_bias_follows_eq_9_to_13(rng, kind):
    x = rng.normal(size=(2, 5, 8)).astype("float32")
    boxes = random_boxes(rng, 2, 5)
    layer = GeometryBias(num_heads=3, kind=kind, geometry_dim=4)
    out = np.array(layer(x, x, boxes))
    for row in range(2):
        expected = reference.geometry_bias(
            layer, x[row].astype("float64"), boxes[row].astype("float64")
        )
        np.testing.assert_allclose(out[row], expected, rtol=1e-6, atol=1e-5)
    assert np.abs(out).max() > 0.01


def test_biases_of_many_items_are_those_of_training(rng):
    x = rng.normal(size=(3, MANY_ITEMS, 8)).astype("float32")
    boxes = random_boxes(rng, 3, MANY_ITEMS)
    layer = GeometryBias(num_heads=3, kind=KINDS[-1], geometry_dim=4)
    out = np.array(layer(x, x, boxes))  # one image after another
    in_training = np.array(layer(x, x, boxes, training=True))
    np.testing.assert_allclose(out, in_training, rtol=1e-6, atol=1e-5)
    assert np.abs(out[0] - out[1]).max() > 0.1


DEGENERATE = {
    "one region": [[0.1, 0.1, 0.5, 0.5]],
    "coinciding": [[0.1, 0.1, 0.5, 0.5]] * 3,
    "no width": [[0.3, 0.1, 0.3, 0.5], [0.0, 0.0, 1.0, 1.0]],
    "points": [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]],
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("boxes", DEGENERATE.values(), ids=DEGENERATE)
def test_degenerate_boxes_give_finite_attention(rng, boxes, dtype):
    boxes = np.float32([boxes])
    x = keras.ops.cast(rng.normal(size=(1, boxes.shape[1], 8)), dtype)
    for kind in KINDS:
        signed = kind == "key"
        layer = GeometryAwareSelfAttention(2, 4, kind=kind, signed=signed, dtype=dtype)
        out = layer(x, boxes=boxes)
        assert np.isfinite(np.array(keras.ops.cast(out, "float32"))).all()


def test_half_precision_keeps_boxes_in_float32(rng):
    """Boxes a thousandth of the image apart are still distinguished."""
    boxes = np.float32([[[0.500, 0.5, 0.502, 0.6], [0.501, 0.5, 0.503, 0.6]]])
    x = rng.normal(size=(1, 2, 8)).astype("float32")
    full = GeometryAwareSelfAttention(2, 4, geometry_dim=4)
    expected = np.array(full(x, boxes=boxes))
    half = GeometryAwareSelfAttention(2, 4, geometry_dim=4, dtype="mixed_bfloat16")
    half(x, boxes=boxes)
    half.set_weights(full.get_weights())
    out = np.array(keras.ops.cast(half(x, boxes=boxes), "float32"))
    np.testing.assert_allclose(out, expected, atol=0.03)


def test_box_encoding_distinguishes_boxes(rng):
    layer = BoxEncoding()
    boxes = random_boxes(rng, 1, 4)
    zeros = np.zeros((1, 4, 16), "float32")
    encoding = np.array(layer(zeros, boxes))[0]
    centre = 100 * (boxes[0, 2, 0] + boxes[0, 2, 2]) / 2
    np.testing.assert_allclose(
        encoding[2, :4],
        [np.sin(centre), np.sin(centre / 100), np.cos(centre), np.cos(centre / 100)],
        atol=1e-4,
    )
    distances = np.linalg.norm(encoding[:, None] - encoding[None], axis=-1)
    assert (distances + 9 * np.eye(4) > 0.1).all()
    with pytest.raises(InputError, match="divisible by 8"):
        BoxEncoding()(np.zeros((1, 4, 12), "float32"), boxes)


def test_unknown_kind_and_missing_boxes_are_named(rng):
    with pytest.raises(InputError, match="content_independent, query, key"):
        GeometryBias(2, kind="value")
    layer = GeometryAwareSelfAttention(2, 4)
    with pytest.raises(InputError, match="boxes"):
        layer(np.zeros((1, 3, 8), "float32"))
