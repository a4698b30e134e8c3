import keras
import numpy as np
import pytest
from conftest import check_trains_and_saves
from keras import ops

import keras_caption as kc
from keras_caption.text import BOS

GRID = {"grid_height": 3, "grid_width": 5, "grid_dim": 6}
SIZE = {"num_layers": 2, "model_dim": 16, "num_heads": 2, "feedforward_dim": 24}
SMALL = {**SIZE, "num_layers": 2, "area_layers": 1}
NAMES = ["spatial", "area_regular", "area"]


def grids(rng, batch=3):
    return {"grid": rng.normal(size=(batch, 3, 5, 6)).astype("float32")}


def test_train_caption_and_save(rng, tmp_path, vocabulary):
    model = kc.models.create(
        "area", vocabulary=vocabulary, **GRID, **{**SIZE, "num_layers": 1}
    )
    check_trains_and_saves(model, grids(rng), rng, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_teacher_forced(rng, vocabulary, name):
    model = kc.models.create(name, vocabulary=vocabulary, **GRID, **SIZE)
    tokens = rng.integers(4, 34, (6, 7)).astype("int32")
    tokens[:, 0] = BOS
    memory = model.encode(model.read(grids(rng)))
    expected = ops.convert_to_numpy(model.logits(tokens, memory))
    state = model.start(memory, length=9)  # of a longer caption
    state["cache"] = keras.tree.map_structure(
        lambda x: ops.repeat(x, 2, axis=0), state["cache"]
    )
    for index in range(7):
        logits, state = model.step(tokens[:, index], state, index)
        np.testing.assert_allclose(logits, expected[:, index], atol=1e-4)
    weights = ops.convert_to_numpy(model.attention(tokens, memory))
    assert weights.shape == (3, 14, 15)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("name", ["spatial", "area"])
def test_no_token_sees_a_later_one(rng, vocabulary, name):
    model = kc.models.create(name, vocabulary=vocabulary, **GRID, **SIZE)
    images = grids(rng)
    tokens = rng.integers(4, 34, (3, 7)).astype("int32")
    before = model({**images, "tokens": tokens})
    tokens[:, 4:] = 5
    after = model({**images, "tokens": tokens})
    np.testing.assert_allclose(before[:, :4], after[:, :4], atol=1e-5)
    shorter = model({**images, "tokens": tokens[:, :4]})
    np.testing.assert_allclose(before[:, :4], shorter, atol=1e-5)


# Table 4 of the area paper: what is attended to in the first layers.
ROWS = {
    "area_regular": (None, None),
    "area_2x2": ((2, 2, False), None),
    "area_3x3": ((3, 3, True), None),
    "area": ((3, 3, True), (1, 2, True)),
}


def areas_of(attention):
    areas = attention.memory
    return areas and (areas.max_height, areas.max_width, areas.combined_features)


def test_areas_are_the_papers():
    sizes = {}
    for name, (of_image, of_caption) in ROWS.items():
        model = kc.models.create(name, vocabulary_size=9, **GRID, **SMALL)
        sizes[name] = model.count_params()
        for i, other in enumerate(model.decoder.blocks):
            expected = (of_image, of_caption) if i < 1 else (None, None)
            block = model.encoder.get_layer(f"encoder_{i}")
            assert areas_of(block.attention) == expected[0]
            assert areas_of(other.cross_attention) == expected[0]
            assert areas_of(other.self_attention) == expected[1]
    assert sizes["area_2x2"] == sizes["area_regular"]  # parameter free
    # Hidden and key layers, and the embeddings of Eq. 6 and 7.
    dense = (4 - 1) * 8 * 8 + 8 + 8 * 8 + 8
    of_image, of_caption = dense + 2 * 3 * 4, dense + (1 + 2) * 4
    assert sizes["area_3x3"] == sizes["area_regular"] + 2 * of_image
    assert sizes["area"] == sizes["area_3x3"] + of_caption
    full = kc.models.arguments("area")
    names = ("num_layers", "area_layers", "model_dim", "num_heads")
    assert [full[name] for name in names] == [6, 2, 512, 8]


def test_spatial_is_the_papers():
    model = kc.models.create("spatial", vocabulary_size=100)
    assert len(model.decoder.blocks) == 4
    assert model.encoder.input["grid"].shape == (None, 14, 14, 512)
    block = model.decoder.blocks[0]
    assert block.self_attention.temperature.length == 15  # BOS and 14 words
    assert block.cross_attention.temperature.length is None  # all cells
    assert block.dropout == 0.0
    assert block.cross_attention.dropout == 0.1


def test_the_temperature_grows_with_the_number_of_keys(rng):
    layer = kc.layers.LengthTemperature()
    keys = np.zeros((2, 3, 7, 16), "float32")
    assert float(layer(keys)) == pytest.approx(23**0.5)
    # A causal mask takes nothing off the length (Eq. 2); padding does.
    causal = np.tril(np.ones((7, 7), bool))[None]
    np.testing.assert_allclose(np.ravel(layer(keys, mask=causal)), 23**0.5, rtol=1e-6)
    padding = np.arange(7) < np.array([[7], [4]])
    found = layer(keys, mask=padding[:, None] & causal)
    np.testing.assert_allclose(np.ravel(found), [23**0.5, 20**0.5], rtol=1e-6)
    assert float(kc.layers.LengthTemperature(9)(keys)) == 5.0
    # Against Eq. 2, written out.
    attention = kc.layers.MultiHeadAttention(
        1, 4, temperature=kc.layers.LengthTemperature(), output_projection=False
    )
    x = rng.normal(size=(2, 5, 8)).astype("float32")
    out = attention(x)
    q, k, v = (
        ops.convert_to_numpy(dense(x))
        for dense in (attention.query_dense, attention.key_dense, attention.value_dense)
    )
    scores = np.exp(q @ k.transpose(0, 2, 1) / 3.0)  # sqrt(5 + 4)
    expected = scores / scores.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(out, expected, atol=1e-5)


def test_every_cell_of_a_grid_has_its_own_encoding():
    encoded = kc.layers.GridEncoding()(np.zeros((1, 4, 6, 16), "float32"))
    cells = ops.convert_to_numpy(encoded)[0]
    assert (cells[1, :, :8] == cells[1, :1, :8]).all()  # a row's
    assert (cells[:, 2, 8:] == cells[:1, 2, 8:]).all()  # a column's
    assert len(np.unique(cells.reshape(24, 16), axis=0)) == 24
    with pytest.raises(ValueError, match="divisible by 4"):
        kc.layers.GridEncoding()(np.zeros((1, 2, 2, 6)))
