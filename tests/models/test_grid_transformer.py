import keras
import numpy as np
import pytest
from conftest import check_trains_and_saves
from keras import ops

import keras_caption as kc
from keras_caption.text import BOS

GRID = {"grid_height": 3, "grid_width": 5, "grid_dim": 6}
SIZE = {"num_layers": 2, "model_dim": 16, "num_heads": 2, "feedforward_dim": 24}
NAMES = ["spatial", "area_regular", "area_2x2", "area_3x3_2"]


def grids(rng, batch=3):
    return {"grid": rng.normal(size=(batch, 3, 5, 6)).astype("float32")}


def test_train_caption_and_save(rng, tmp_path, vocabulary):
    model = kc.models.create("area_3x3_2", vocabulary=vocabulary, **GRID, **SIZE)
    check_trains_and_saves(model, grids(rng), rng, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_word_by_word_is_teacher_forced(rng, vocabulary, name):
    model = kc.models.create(name, vocabulary=vocabulary, **GRID, **SIZE)
    tokens = rng.integers(4, 34, (6, 7)).astype("int32")
    tokens[:, 0] = BOS
    memory = model.encode(grids(rng))
    expected = ops.convert_to_numpy(model.logits(tokens, memory))
    state = model.start(memory, length=7)
    state["cache"] = keras.tree.map_structure(
        lambda x: ops.repeat(x, 2, axis=0), state["cache"]
    )
    for index in range(7):
        logits, state = model.step(tokens[:, index], state, index)
        np.testing.assert_allclose(logits, expected[:, index], atol=1e-4)
    looks = ops.convert_to_numpy(model.attention(tokens, memory))
    assert looks.shape == (3, 14, 15)
    np.testing.assert_allclose(looks.sum(axis=-1), 1.0, atol=1e-5)


def test_no_word_sees_a_later_one(rng, vocabulary):
    model = kc.models.create("area_3x3_2", vocabulary=vocabulary, **GRID, **SIZE)
    images = grids(rng)
    tokens = rng.integers(4, 34, (3, 7)).astype("int32")
    before = model({**images, "tokens": tokens})
    tokens[:, 4:] = 5
    after = model({**images, "tokens": tokens})
    np.testing.assert_allclose(before[:, :4], after[:, :4], atol=1e-5)


def test_sizes_are_the_papers():
    models = {
        name: kc.models.create(name, vocabulary_size=100)
        for name in ("area_regular", "area_3x3", "area_3x3_2", "spatial")
    }
    regular = models["area_regular"].count_params()
    assert models["area_3x3"].count_params() == regular  # parameter free
    # Six attention layers: hidden and key layers, and the embeddings of Eq. 7, 8.
    hidden, key = (4 - 1) * 64 * 64 + 64, 64 * 64 + 64
    of_grid, of_words = 2 * 3 * 32, (1 + 3) * 32
    extra = 6 * (hidden + key) + 4 * of_grid + 2 * of_words
    assert models["area_3x3_2"].count_params() == regular + extra
    spatial = models["spatial"]
    assert len(spatial.decoder.blocks) == 4
    assert spatial.encoder.input["grid"].shape == (None, 14, 14, 512)


def test_the_temperature_grows_with_what_a_query_sees(rng):
    layer = kc.layers.LengthTemperature()
    keys = np.zeros((2, 3, 7, 16), "float32")
    assert float(layer(keys)) == pytest.approx(23**0.5)
    mask = np.tril(np.ones((7, 7), bool))[None]
    found = ops.convert_to_numpy(layer(keys, mask=mask))
    expected = np.sqrt(np.arange(1, 8) + 16.0)
    np.testing.assert_allclose(found[0, 0, :, 0], expected, rtol=1e-6)
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
