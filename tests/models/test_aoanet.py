import numpy as np
import pytest
import reference
from conftest import check_trains_and_saves, random_images, read_oracle, tiny
from keras import ops

import keras_caption as kc
from keras_caption.models import AoADecoder

CONTEXTS = {"AoA": "aoa", "LSTM": "lstm", "base": "linear"}


@pytest.fixture(scope="module")
def oracle():
    return read_oracle("aoa_module")


def put_dense(layer, data, name):
    """A PyTorch linear layer's weights into a Keras one."""
    layer.kernel.assign(data[f"{name}.weight"].T)
    layer.bias.assign(data[f"{name}.bias"])


def put_norm(layer, data, name):
    layer.gain.assign(data[f"{name}.a_2"])
    layer.offset.assign(data[f"{name}.b_2"])


def put_lstm(cell, data, name):
    cell.kernel.assign(data[f"{name}.weight_ih"].T)
    cell.recurrent_kernel.assign(data[f"{name}.weight_hh"].T)
    cell.bias.assign(data[f"{name}.bias_ih"] + data[f"{name}.bias_hh"])


def put_attention(attention, data, name):
    for i, dense in enumerate(("query", "key", "value")):
        put_dense(getattr(attention, f"{dense}_dense"), data, f"{name}.linears.{i}")
    if attention.gate is not None:
        put_dense(attention.gate.dense, data, f"{name}.aoa_layer.0")
    if attention.output_projection:
        put_dense(attention.output_dense, data, f"{name}.output_layer")


def attention_layer(gate=True):
    return kc.layers.MultiHeadAttention(
        4,
        8,
        gate=kc.layers.AttentionOnAttention() if gate else None,
        output_projection=not gate,
    )


def plain_attention():
    return kc.layers.MultiHeadAttention(4, 8, output_projection=False)


def test_aoa_of_several_heads_is_the_official(oracle):
    x, valid = oracle["x"], oracle["mask"] > 0
    for name, gate in (("mha_aoa", True), ("mha_plain", False)):
        attention = attention_layer(gate)
        attention.build(x.shape)
        put_attention(attention, oracle, f"{name}.w")
        out, weights = attention(x, query_mask=valid, return_attention_scores=True)
        np.testing.assert_allclose(out, oracle[f"{name}.out"], atol=1e-5)
        np.testing.assert_allclose(weights, oracle[f"{name}.attn"], atol=1e-5)
    # A query that is not one of the items.
    attention, query = attention_layer(), oracle["q1"][:, None]
    attention.build(query.shape, x.shape)
    put_attention(attention, oracle, "mha_cross_aoa.w")
    out = attention(query, oracle["kk"], value_mask=valid)
    np.testing.assert_allclose(out[:, 0], oracle["mha_cross_aoa.out"], atol=1e-5)


@pytest.mark.parametrize("masked", [True, False])
def test_refining_is_the_official(oracle, masked):
    x = ops.convert_to_tensor(oracle["x"])
    mask = oracle["mask"] > 0 if masked else None
    for i in range(6):
        block = kc.layers.RefiningBlock(attention_layer())
        block.build(x.shape)
        name = f"refiner.w.layers.{i}"
        put_attention(block.attention, oracle, f"{name}.self_attn")
        put_norm(block.attention_norm, oracle, f"{name}.sublayer.0.norm")
        x = block(x, mask=mask)
        if i == 0 and masked:
            np.testing.assert_allclose(x, oracle["refine_layer0.out"], atol=1e-5)
    norm = kc.layers.UnbiasedLayerNormalization()
    norm.build(x.shape)
    put_norm(norm, oracle, "refiner.w.norm")
    expected = oracle["refiner.out" if masked else "refiner_nomask.out"]
    np.testing.assert_allclose(norm(x), expected, atol=1e-5)


def test_refining_without_aoa_is_the_official(oracle):
    x, name = oracle["x"], "refine_layer_ff_noaoa.w"
    block = kc.layers.RefiningBlock(attention_layer(gate=False), feedforward_dim=64)
    block.build(x.shape)
    put_attention(block.attention, oracle, f"{name}.self_attn")
    put_norm(block.attention_norm, oracle, f"{name}.sublayer.0.norm")
    norm, hidden, _, output, _ = block.feedforward
    put_norm(norm, oracle, f"{name}.sublayer.1.norm")
    put_dense(hidden, oracle, f"{name}.feed_forward.w_1")
    put_dense(output, oracle, f"{name}.feed_forward.w_2")
    out = block(x, mask=oracle["mask"] > 0)
    np.testing.assert_allclose(out, oracle["refine_layer_ff_noaoa.out"], atol=1e-5)


@pytest.mark.parametrize("kind", CONTEXTS)
def test_a_step_of_the_decoder_is_the_official(oracle, kind):
    decoder = AoADecoder(9, 32, 24, plain_attention(), context=CONTEXTS[kind])
    decoder.build((3, 1), (3, 7, 32))
    name = f"dec_{kind}_res0"
    put_lstm(decoder.cell, oracle, f"{name}.w.att_lstm")
    put_norm(decoder.query_norm, oracle, f"{name}.w.attention.norm")
    put_dense(decoder.attention.query_dense, oracle, f"{name}.w.attention.linears.0")
    if kind == "AoA":
        put_dense(decoder.gate.dense, oracle, f"{name}.w.att2ctx.0")
    elif kind == "LSTM":
        put_lstm(decoder.context_cell, oracle, f"{name}.w.att2ctx")
    else:
        put_dense(decoder.context_dense, oracle, f"{name}.w.att2ctx.0")

    def heads(x):
        return np.reshape(x, (3, 7, 4, 8)).transpose(0, 2, 1, 3)

    values, keys = np.split(oracle["dec.p_att"], 2, axis=-1)
    items = (
        heads(keys),
        heads(values),
        oracle["mask"][:, None] > 0,
        oracle["dec.mean"],
    )
    (hidden, context), (cell, context_cell) = (
        oracle["dec.state_h"],
        oracle["dec.state_c"],
    )
    state = {"hidden": hidden, "cell": cell, "context": context}
    if kind == "LSTM":
        state |= {"context_hidden": context, "context_cell": context_cell}
    new = decoder._read_token(oracle["dec.xt"], state, items)
    _, weights = decoder._attend_to(new["hidden"], items, return_attention_scores=True)
    np.testing.assert_allclose(new["context"], oracle[f"{name}.out"], atol=1e-5)
    np.testing.assert_allclose(new["hidden"], oracle[f"{name}.new_h"][0], atol=1e-5)
    np.testing.assert_allclose(new["context"], oracle[f"{name}.new_h"][1], atol=1e-5)
    np.testing.assert_allclose(new["cell"], oracle[f"{name}.new_c"][0], atol=1e-5)
    if kind == "LSTM":
        expected = oracle[f"{name}.new_c"][1]
        np.testing.assert_allclose(new["context_cell"], expected, atol=1e-5)
    np.testing.assert_allclose(weights, oracle[f"{name}.attn"], atol=1e-5)


@pytest.mark.parametrize("context", ["aoa", "lstm", "lstm_aoa"])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_single_head_of_additive_attention(rng, vocabulary, context, batch):
    """Of an image with one region, and of images with padding."""
    name = f"aoanet_single_{context}"
    model = kc.models.create(
        name, vocabulary=vocabulary, score="additive", **tiny(name)
    )
    for weight in model.weights:  # biases too, which are zeros at first
        weight.assign(rng.normal(0, 0.5, weight.shape))
    images = random_images(rng, batch, regions=2 * batch - 1)
    captions = rng.integers(3, len(vocabulary), (2 * batch, 4))
    logits = model.logits(captions, model.encode(model.read(images)))
    for i, caption in enumerate(captions):
        valid = images["regions"][i // 2][images["region_mask"][i // 2]]
        expected = logits_of_single(model, valid.astype("float64"), caption)
        np.testing.assert_allclose(logits[i], expected, atol=1e-4)


def test_padding_does_not_change_normalized_keys(rng):
    attention = kc.layers.MultiHeadAttention(
        2, 4, key_norm="instance", output_projection=False
    )
    decoder = kc.models.AoADecoder(9, 8, 8, attention)
    memory = rng.normal(size=(1, 5, 8)).astype("float32")
    tokens, mask = np.array([[1, 4, 5]]), np.arange(5)[None] < 3
    expected = decoder(tokens, memory[:, :3])
    np.testing.assert_allclose(decoder(tokens, memory, mask), expected, atol=1e-5)


def logits_of_single(model, regions, caption):
    """Logits after each token of a caption, of a model of the released code's base.

    Args:
        regions: float64 `(M, region_dim)`, the valid ones of one image.
        caption: int `(T,)`.
    """
    decoder, dense = model.decoder, reference.dense
    embedding = model.encoder.get_layer("region_embedding")
    memory = np.maximum(dense(embedding, regions), 0)
    keys = dense(decoder.attention.key_dense, memory)
    [vector] = np.array(decoder.attention.score.vectors, "float64")
    words = np.array(decoder.embedding.embeddings, "float64") * np.sqrt(10)
    first = second = np.zeros((2, 16))  # of both LSTMs, output and cell
    context, logits = np.zeros(16), []
    for token in caption:
        inputs = np.maximum(words[token], 0), context + memory.mean(0)
        first = lstm(decoder.cell, np.concatenate(inputs), *first)
        query = first[0]
        scores = np.tanh(dense(decoder.attention.query_dense, query) + keys) @ vector
        attended = reference.softmax(scores) @ memory
        if decoder.context_cell is not None:
            inputs = np.concatenate([attended, query])
            second = lstm(decoder.context_cell, inputs, *second)
            query = second[0]
        context = query
        if decoder.gate is not None:
            both = dense(decoder.gate.dense, np.concatenate([attended, query]))
            context = both[:16] * sigmoid(both[16:])
        logits.append(dense(decoder.output_dense, context))
    return logits


def lstm(cell, x, hidden, state):
    """One step of an LSTM: its output and its cell."""
    kernel, recurrent, bias = (np.array(w.value, "float64") for w in cell.weights)
    i, f, new, o = np.split(x @ kernel + hidden @ recurrent + bias, 4)
    state = sigmoid(f) * state + sigmoid(i) * np.tanh(new)
    return sigmoid(o) * np.tanh(state), state


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("aoanet", {}),
        ("aoanet_base", {}),
        ("aoanet_refine", {}),
        ("aoanet_single_lstm_aoa", {}),
        ("aoanet_single_aoa", {"score": "additive", "input_area": 2}),
        ("updown", {"attention_dim": 7}),
    ],
)
def test_variants_train_caption_and_save(rng, tmp_path, vocabulary, name, options):
    model = kc.models.create(name, vocabulary=vocabulary, **tiny(name), **options)
    model.run_eagerly = name != "aoanet"  # one of them is compiled
    check_trains_and_saves(model, random_images(rng), rng, tmp_path)
