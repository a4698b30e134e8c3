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
