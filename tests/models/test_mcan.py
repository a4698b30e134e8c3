"""MCAN, held to outputs and gradients of the authors' code."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import read_oracle

from keras_caption.convert import convert_mcan
from keras_caption.losses import AnswerCrossEntropy

WORDS = [f"w{i}" for i in range(23)]
ANSWERS = [f"a{i}" for i in range(20)]


@pytest.fixture(scope="module")
def oracle():
    return read_oracle("mcan")


@pytest.fixture(scope="module")
def official(oracle):
    """The model with the authors' weights."""
    tensors = {name[2:]: x for name, x in oracle.items() if name.startswith("w.")}
    tokens = {"PAD": 0, "UNK": 1} | {word: i + 2 for i, word in enumerate(WORDS)}
    return convert_mcan(tensors, tokens, ANSWERS, num_heads=4)


def inputs_of(oracle):
    """The official inputs: tokens are numbered otherwise, PAD alike."""
    tokens = oracle["ques_ix"]
    return {
        "regions": oracle["img_feat"],
        "region_mask": np.any(oracle["img_feat"] != 0, axis=-1),
        "question": np.where(tokens == 1, 3, np.where(tokens > 1, tokens + 2, 0)),
    }


def test_every_layer_computes_what_the_official_one_does(official, oracle):
    encoder = official.encoder
    expected = {
        "lstm": "lstm.out",
        "region_embedding": "img_feat_linear.out",
        "pooled_question": "attflat_lang.out",
        "pooled_regions": "attflat_img.out",
        "fused_norm": "proj_norm.out",
        "logits": "logits",
    }
    outputs = {name: encoder.get_layer(name).output for name in expected}
    for i in range(2):
        outputs[f"question_{i}"] = encoder.get_layer(f"question_{i}").output
        of_regions = encoder.get_layer(f"regions_{i}").output
        for part, value in zip(
            ("out", "att_self", "att_guided"), of_regions, strict=True
        ):
            outputs[f"regions_{i}.{part}"] = value
            expected[f"regions_{i}.{part}"] = f"dec{i}.{part}"
        expected[f"question_{i}"] = f"enc{i}.out"
    inputs = inputs_of(oracle)
    found = keras.Model(encoder.input, outputs)(official.prepare_inputs(inputs))
    for name, theirs in expected.items():
        # Ours has zeros in padded regions, as the official inputs have.
        np.testing.assert_allclose(found[name], oracle[theirs], atol=1e-5, err_msg=name)
    np.testing.assert_allclose(official(inputs), oracle["logits"], atol=1e-5)
    guided = official.attention(inputs)
    np.testing.assert_allclose(guided, oracle["dec1.att_guided"].mean(1), atol=1e-6)


def test_loss_and_gradients_are_the_official_ones(official, oracle):
    inputs = {name: tf.constant(x) for name, x in inputs_of(oracle).items()}
    with tf.GradientTape() as tape:
        tape.watch(inputs["regions"])
        losses = AnswerCrossEntropy(reduction=None)(oracle["target"], official(inputs))
        total = tf.reduce_sum(losses)
    np.testing.assert_allclose(losses, oracle["loss_per_sample"], rtol=1e-6)
    mean = AnswerCrossEntropy()(oracle["target"], official(inputs))
    np.testing.assert_allclose(mean, oracle["loss"] / 3, rtol=1e-6)
    layer = official.encoder.get_layer
    variables = {
        "embedding.weight": layer("embedding").embeddings,
        "lstm.weight_hh_l0": layer("lstm").cell.recurrent_kernel,
        "backbone.enc_list.0.mhatt.linear_q.weight": layer(
            "question_0"
        ).attention.query_dense.kernel,
        "backbone.dec_list.0.mhatt2.linear_k.weight": layer(
            "regions_0"
        ).guided_attention.key_dense.kernel,
        "backbone.dec_list.1.ffn.mlp.fc.linear.weight": layer(
            "regions_1"
        ).hidden_dense.kernel,
        "backbone.dec_list.1.ffn.mlp.linear.weight": layer(
            "regions_1"
        ).output_dense.kernel,
        "backbone.dec_list.1.norm3.a_2": layer("regions_1").feedforward_norm.gain,
        "attflat_img.linear_merge.weight": layer("pooled_regions").output_dense.kernel,
        "attflat_lang.linear_merge.weight": layer(
            "pooled_question"
        ).output_dense.kernel,
    }
    sources = {name: variable.value for name, variable in variables.items()}
    sources["img_feat"] = inputs["regions"]
    for name, gradient in tape.gradient(total, sources).items():
        found = np.array(gradient)
        if name == "embedding.weight":
            np.testing.assert_array_equal(found[1:3], 0)  # BOS and EOS, not theirs
            found = found[[0, 3, *range(4, 27)]]
        elif name.endswith("weight") or "weight_hh" in name:
            found = found.T
        expected = oracle[f"grad.{name}"]
        atol = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=atol, err_msg=name)
