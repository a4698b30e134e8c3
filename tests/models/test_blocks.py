"""Options of Transformer blocks: where they normalize, and what else they differ in."""

import keras
import numpy as np
import pytest
from conftest import random_images, tiny
from keras import ops

import keras_caption as kc
from keras_caption.layers import FeedForward, TransformerEncoderBlock

PRE = {"norm_position": "pre", "norm_epsilon": 1e-5, "activation": "gelu"}


def test_a_pre_norm_block_computes_its_equations(rng):
    x = rng.normal(size=(2, 5, 8)).astype("float32")
    attention = kc.models.make_attention(2, 4)
    block = TransformerEncoderBlock(attention, 16, **{**PRE, "activation": "swish"})
    output = np.array(block(x))

    def norm(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    middle = x + np.array(attention(norm(x)))
    layer = block.feedforward
    hidden = norm(middle) @ np.array(layer.hidden_dense.kernel)
    hidden = hidden / (1 + np.exp(-hidden))
    expected = middle + hidden @ np.array(layer.output_dense.kernel)
    np.testing.assert_allclose(output, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ngsan", {"decoder_layers": 1, "region_dropout": 0.5, "norm": "unbiased"}),
        (
            "transformer_tiny_area_nsa",
            {
                "tied_softmax": True,
                "logit_bias": True,
                "decoder_heads": 4,
                "decoder_feedforward_dim": 24,
                "decoder_activation": "swish",
            },
        ),
    ],
)
def test_pre_norm_models_generate_what_they_are_given(name, options, rng, tmp_path):
    sizes = {**tiny(name), **PRE, **options}
    if name == "ngsan":
        model = kc.models.create(name, vocabulary_size=20, **sizes)
        inputs = random_images(rng)
    else:
        sizes.pop("region_dim")
        model = kc.models.create(name, source_size=20, target_size=20, **sizes)
        inputs = {"source": np.array([[5, 6, 7, 2], [8, 2, 0, 0]], "int32")}
    for weight in model.weights:  # gains and biases too
        if weight.dtype == "float32":
            weight.assign(weight + 0.1 * rng.normal(size=weight.shape))
    tokens, scores = model.generate_tokens(inputs, beam_size=1, max_length=6)
    given = np.pad(tokens, ((0, 0), (1, 0)), constant_values=kc.text.BOS)
    log_probs = np.array(ops.log_softmax(model({**inputs, "tokens": given[:, :-1]})))
    chosen = np.take_along_axis(log_probs, tokens[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(
        (chosen * (tokens != kc.text.PAD)).sum(axis=1), scores, atol=1e-4
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    again, _ = loaded.generate_tokens(inputs, beam_size=1, max_length=6)
    np.testing.assert_array_equal(again, tokens)


def test_unknown_options_of_blocks_are_refused():
    with pytest.raises(kc.InputError, match="`norm_position`"):
        kc.models.create("san", vocabulary_size=9, norm_position="between")
    with pytest.raises(kc.InputError, match="`activation` must be one of relu, swish"):
        FeedForward(4, activation="mish")


@pytest.mark.parametrize("name", ["san", "area_regular"])
def test_blocks_of_captioners_begin_with_positions_that_differ(name, rng):
    """Six post-norm blocks that begin as Keras's layers do make them the same."""
    inputs = {"regions": rng.normal(size=(2, 16, 8)), "boxes": np.zeros((2, 16, 4))}
    inputs["boxes"][..., 2:] = 1
    sizes = tiny(name, num_layers=6, model_dim=32, decoder_layers=1, region_dim=8)
    if name == "area_regular":
        sizes |= {"grid_height": 4, "grid_width": 4, "grid_dim": 8}
        del sizes["region_dim"]
        inputs = {"grid": inputs["regions"].reshape(2, 4, 4, 8)}
    inputs = {key: x.astype("float32") for key, x in inputs.items()}
    alike = {}
    for start in (None, "glorot"):
        keras.utils.set_random_seed(0)
        model = kc.models.create(name, vocabulary_size=9, **sizes, initialization=start)
        memory = np.array(model.encode(model.read(inputs))["memory"])
        memory /= np.linalg.norm(memory, axis=-1, keepdims=True)
        alike[start] = np.mean(memory @ memory.swapaxes(1, 2))
    assert alike[None] < 0.6 < 0.9 < alike["glorot"]


def test_translators_begin_as_those_of_fairseq():
    def kernels(model):
        block = model.decoder.blocks[0]
        return (
            block.cross_attention.output_initializer,
            block.self_attention.kernel_initializer.scale,
            block.kernel_initializer.scale,
        )

    sizes = {"num_layers": 1, "source_size": 9, "target_size": 9}
    model = kc.models.create("transformer_tiny", **sizes)
    assert kernels(model) == ("glorot_uniform", 1 / 2, 1 / 3)
    model = kc.models.create("transformer_tiny", **sizes, initialization="small")
    assert kernels(model)[0].scale == 1 / 3
