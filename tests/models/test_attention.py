"""Every mechanism of attention in every kind of encoder, and what each excludes."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from keras import ops

import keras_caption as kc

FAMILIES = "san", "aoanet", "area_regular"
# Options of all mechanisms, in two sets, and the sockets of the encoder's attention
# that they fill.
MECHANISMS = {
    "areas": (
        {"query_norm": "instance", "input_area": 2, "combined_features": True}
        | {"geometry": "query", "signed_geometry": True}
        | {"temperature": "length", "gate": "aoa"},
        ("query_norm", "memory", "bias", "temperature", "gate"),
    ),
    "geometry": (
        {"query_norm": "batch", "key_norm": "layer", "norm_affine": True}
        | {"geometry": "content_independent+query+key", "gate": "aoa"},
        ("query_norm", "key_norm", "bias", "gate"),
    ),
}
TOKENS = np.int32([[1, 5, 6, 7], [1, 8, 9, 2], [1, 2, 0, 0]])


def create(family, vocabulary=None, **options):
    """A model of one block, with random weights also where they begin at zero."""
    sizes = tiny(family, num_layers=1, model_dim=8, feedforward_dim=8)
    if family == "area_regular":
        del sizes["region_dim"]
        sizes |= {"grid_height": 2, "grid_width": 3, "grid_dim": 6}
    sizes |= {"vocabulary": vocabulary} if vocabulary else {"vocabulary_size": 14}
    model = kc.models.create(family, **sizes, **options)
    rng = np.random.default_rng(1)
    for weight in model.trainable_variables:
        weight.assign(weight + 0.3 * rng.normal(size=weight.shape))
    return model


def images_of(family, rng):
    if family == "area_regular":
        return {"grid": rng.normal(size=(3, 2, 3, 6)).astype("float32")}
    return random_images(rng)


@pytest.fixture(scope="module")
def models(vocabulary):
    """Models by family and set of mechanisms."""
    made = {}
    for family in FAMILIES:
        for mechanisms, (options, _) in MECHANISMS.items():
            if (family, mechanisms) == ("aoanet", "geometry"):
                # Which has no gate of its own.
                options = {**options, "refining": "attention"}
            elif (family, mechanisms) == ("san", "areas"):
                options = {**options, "output_area": 2}
            made[family, mechanisms] = create(family, vocabulary=vocabulary, **options)
    return made


def attention_of(model):
    """The encoder's attention layer."""
    [layer] = [x.attention for x in model.encoder.layers if hasattr(x, "attention")]
    return layer


@pytest.mark.parametrize("mechanisms", MECHANISMS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_mechanism_works_in_every_encoder(
    family, mechanisms, models, rng, tmp_path
):
    model = models[family, mechanisms]
    _, sockets = MECHANISMS[mechanisms]
    assert all(getattr(attention_of(model), socket) for socket in sockets)
    batch = {**images_of(family, rng), "tokens": TOKENS}
    logits = ops.convert_to_numpy(model(batch))
    assert np.isfinite(logits).all()

    model.save(tmp_path / "model.keras")
    model = keras.models.load_model(tmp_path / "model.keras")
    if "region_mask" in batch:  # without its padding, the last image is captioned alike
        batch = {name: batch[name][2:, :3] for name in ("regions", "boxes")}
    else:
        batch = {name: x[2:] for name, x in batch.items()}
    found = model({**batch, "tokens": TOKENS[2:]})
    np.testing.assert_allclose(found, logits[2:], atol=1e-5)


def test_combined_mechanisms_are_cached_and_exported(models, rng, tmp_path):
    members = [models[family, "areas"] for family in FAMILIES]
    images = {key: x for name in FAMILIES for key, x in images_of(name, rng).items()}
    for model in members:
        memory = model.encode(model.read(images))
        logits = ops.convert_to_numpy(model.logits(TOKENS, memory))
        state = model.start(memory, length=6)
        for t in range(4):
            step, state = model.step(TOKENS[:, t], state, t)
            np.testing.assert_allclose(step, logits[:, t], atol=1e-4)
        weights = ops.convert_to_numpy(model.attention(TOKENS, memory))
        assert weights.shape[1:] == (4, ops.shape(memory["memory"])[1])
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)

    ensemble = kc.models.Ensemble(members)
    expected = ensemble.logits(TOKENS, ensemble.encode(ensemble.read(images)))
    kc.serving.export(ensemble, tmp_path / "1", beam_size=1, max_length=4)
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["logits"]
    answer = served(
        tokens=TOKENS,
        regions=tf.constant(images["regions"]),
        boxes=tf.constant(
            np.where(images["region_mask"][..., None], images["boxes"], 0)
        ),
        grid=tf.constant(images["grid"]),
    )
    np.testing.assert_allclose(answer["logits"], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("family", "options", "problem"),
    [
        ("san", {"area_values": "max"}, "`area_values`: Input should be 'sum' or 'me"),
        ("area_regular", {"geometry": "absolute+key"}, "rows and columns of its cells"),
        ("aoanet", {"refining": None, "query_norm": "layer"}, "leaves no self-atten"),
        ("san", {"gate": "highway"}, "`gate` must be None or one of 'aoa'"),
        ("san", {"query_norm": "group"}, "`query_norm` must be None or one of 'inst"),
        ("aoanet", {"temperature": 2.0}, "`temperature`: Input should be a valid"),
        ("san", {"geometry": "query+query"}, "`geometry` must be None, one of"),
        ("san", {"signed_geometry": True}, "`signed_geometry` changes a relative geom"),
        (
            "aoanet",
            {"score": "additive", "input_area": 2, "area_output_scale": 0.5},
            "projects neither values nor output",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(family, options, problem):
    with pytest.raises(kc.InputError, match=problem):
        create(family, **options)


def test_attention_to_areas_begins_smaller():
    sizes = {"vocabulary_size": 9} | tiny("san", num_layers=3)
    options = {"input_area": 2, "area_values": "mean", "attention_epsilon": 0.1}
    options["initialization"] = "glorot"
    model = kc.models.create("nsan", **sizes, **options, area_output_scale=0.25)
    blocks = [model.encoder.get_layer(f"encoder_{i}").attention for i in range(3)]
    of_captions = model.decoder.blocks[0]
    model(random_images(np.random.default_rng(0)) | {"tokens": TOKENS % 9})

    def share_of_glorot(layer):
        kernel = np.array(layer.output_dense.kernel)
        return np.abs(kernel).max() / np.sqrt(6 / sum(kernel.shape))

    for layer in (*blocks[:2], of_captions.cross_attention):
        assert 0.2 < share_of_glorot(layer) <= 0.25
    for layer in (blocks[2], of_captions.self_attention):  # of single items
        assert 0.8 < share_of_glorot(layer) <= 1
    gated = kc.models.make_attention(
        2, 4, kc.models.AttentionOptions(input_area=3, gate="aoa")
    )
    gated.build((1, 2, 8))  # it has no output projection
    value, key = (
        np.abs(x.kernel).max() / np.sqrt(6 / 16)
        for x in (gated.value_dense, gated.key_dense)
    )
    assert 0.4 < value <= 0.5
    assert 0.8 < key <= 1
    copy = kc.layers.MultiHeadAttention.from_config(gated.get_config())
    assert copy.value_initializer.scale == 0.5
    assert blocks[0].memory.mean_values
    assert blocks[0].query_norm.epsilon == 0.1
    copy = kc.layers.MultiHeadAttention.from_config(blocks[0].get_config())
    assert copy.output_initializer.scale == 0.25


def test_the_default_start_is_one_over_the_mean_size_of_areas():
    def start(**options):
        options = kc.models.AttentionOptions(**options)
        kernel = kc.models.make_attention(1, 3, options).output_initializer
        return getattr(kernel, "scale", 1)

    assert start() == start(input_area=5, area_values="mean") == 1
    assert start(input_area=5) == pytest.approx(1 / np.mean([1, 2, 3, 4, 5]))
    cells = np.mean([1 * 1, 1 * 2, 2 * 1, 2 * 2])
    assert start(input_area=2, grid_width=7) == pytest.approx(1 / cells)


def test_cells_of_a_grid_have_boxes():
    boxes = kc.layers.CellBoxes()(np.zeros((2, 2, 4, 3), "float32"))
    assert boxes.shape == (2, 8, 4)
    np.testing.assert_allclose(boxes[1, 0], [0, 0, 0.25, 0.5])
    np.testing.assert_allclose(boxes[1, 6], [0.5, 0.5, 0.75, 1])
