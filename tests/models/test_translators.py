import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_caption as kc
from keras_caption.text import BOS, EOS, PAD

SIZES = {"num_layers": 2, "model_dim": 8, "dropout": 0.0}
TRANSFORMER = {**SIZES, "num_heads": 2, "feedforward_dim": 12}
MODELS = {
    "transformer": (kc.models.TransformerTranslator, TRANSFORMER),
    "shared": (
        kc.models.TransformerTranslator,
        {**TRANSFORMER, "shared_embeddings": True},
    ),
    "area_nsa": (
        kc.models.TransformerTranslator,
        {
            **TRANSFORMER,
            "input_area": 3,
            "output_area": 3,
            "combined_features": True,
            "query_norm": "instance",
        },
    ),
    "lstm": (kc.models.LSTMTranslator, SIZES),
    "lstm_area": (
        kc.models.LSTMTranslator,
        {
            **SIZES,
            **{"input_area": 3, "num_heads": 2, "score": "product"},
            **{"projected": "keys", "reversed_source": True, "first_states": "last"},
        },
    ),
}
SENTENCES = ["w1 w2 w3 w4 w5", "w6", "w7 w8 unknown"]


@pytest.fixture(scope="module")
def tokenizer():
    return kc.text.WordTokenizer([f"w{i}" for i in range(20)])


@pytest.fixture(scope="module", params=MODELS)
def model(request, tokenizer):
    kind, options = MODELS[request.param]
    keras.utils.set_random_seed(1)
    return kind(tokenizer, tokenizer, name=request.param, **options)


def source_of(model, padding=0):
    batch = model.to_batch(SENTENCES)["source"]
    return np.pad(batch, ((0, 0), (0, padding)), constant_values=PAD)


def targets_of(rng, rows, length=6):
    tokens = rng.integers(4, 24, (rows, length))
    tokens[:, 0] = BOS
    return tokens.astype("int32")


def test_steps_and_a_call_agree(model, rng):
    source = source_of(model)
    tokens = targets_of(rng, 6)  # two sequences for each source
    memory = model.encode(model.read({"source": source}))
    state, steps = model.start(memory, length=6), []
    state["cache"] = keras.tree.map_structure(
        lambda x: ops.repeat(x, 2, axis=0), state["cache"]
    )
    for i in range(6):
        logits, state = model.step(tokens[:, i], state, i)
        steps.append(logits)
    called = model({"source": source, "tokens": tokens.reshape(3, 2, 6)})
    np.testing.assert_allclose(
        np.stack(steps, 1), np.reshape(called, (6, 6, -1)), atol=1e-4
    )


def test_no_later_token_and_no_padding_is_seen(model, rng):
    tokens = targets_of(rng, 3)
    logits = model({"source": source_of(model), "tokens": tokens})
    changed = tokens.copy()
    changed[:, 4:] = 5
    padded = model({"source": source_of(model, 3), "tokens": changed})
    np.testing.assert_allclose(padded[:, :4], logits[:, :4], atol=1e-5)
    alone = model({"source": source_of(model)[1:2, :2], "tokens": tokens[1:2]})
    np.testing.assert_allclose(alone, logits[1:2], atol=1e-5)


def test_it_trains_saves_and_loads(model, tmp_path):
    model = type(model).from_config(model.get_config())
    loss = kc.training.SequenceCrossEntropy()
    model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=False)
    source = source_of(model)
    tokens = np.pad(source, ((0, 0), (1, 0)), constant_values=BOS)
    batch = kc.text.teacher_forcing({"source": source, "tokens": tokens})
    losses = [model.train_on_batch(*batch) for _ in range(4)]
    assert losses[-1] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.source == model.source
    np.testing.assert_array_equal(loaded(batch[0]), model(batch[0]))


def test_an_encoder_reads_from_the_right_and_begins_the_decoder(rng):
    options = {**SIZES, "source_size": 9, "target_size": 9, "first_states": "last"}
    forward, backward = (
        kc.models.LSTMTranslator(reversed_source=reverse, **options)
        for reverse in (False, True)
    )
    source = np.int32([[5, 6, 7, 8, 2], [7, 4, 2, 0, 0]])
    tokens = targets_of(rng, 2) % 9
    forward({"source": source, "tokens": tokens})
    backward({"source": source, "tokens": tokens})
    backward.set_weights(forward.get_weights())
    mirrored = np.int32([[2, 8, 7, 6, 5], [2, 4, 7, 0, 0]])
    expected = forward.encode(forward.read({"source": mirrored}))
    found = backward.encode(backward.read({"source": source}))
    np.testing.assert_allclose(found["states"], expected["states"], atol=1e-6)
    memory, mirrored = (ops.convert_to_numpy(x["memory"]) for x in (found, expected))
    np.testing.assert_allclose(memory[0], mirrored[0, ::-1], atol=1e-6)
    np.testing.assert_allclose(memory[1, :3], mirrored[1, 2::-1], atol=1e-6)
    # The last hidden state of the last LSTM is its output at the end of the reading.
    np.testing.assert_allclose(found["states"][:, -1, 0], memory[:, 0], atol=1e-6)
    state = backward.start(found)["cache"][1]
    np.testing.assert_array_equal(state[1], found["states"][:, 1, 1])


def test_an_ensemble_of_subwords_translates_and_is_served(tmp_path):
    tokenizer = kc.text.SubwordTokenizer.build(SENTENCES * 9, 275)
    members = [
        kind(tokenizer, tokenizer, name=name, **options)
        for name, (kind, options) in MODELS.items()
        if name in ("area_nsa", "lstm")
    ]
    ensemble = kc.models.Ensemble(members)
    options = {"beam_size": 2, "max_length": 4}
    translations = ensemble.translate([*SENTENCES, ""], batch_size=2, **options)
    alone = [ensemble.generate([text], **options)[0] for text in SENTENCES]
    assert translations == [*alone, ""]
    kc.serving.export(ensemble, tmp_path / "1", **options)
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    answers = served(source=tf.constant([*SENTENCES, ""]))
    assert [x.decode() for x in answers["translations"].numpy()] == translations
    assert answers["scores"].numpy()[-1] == -np.inf
    other = kc.models.LSTMTranslator(
        kc.text.WordTokenizer(["a"]), tokenizer, name="other", **SIZES
    )
    with pytest.raises(kc.InputError, match="another source tokenizer"):
        kc.models.Ensemble([members[0], other])


def test_kernels_are_initialized_as_fairseq_does_and_differ(tokenizer):
    """With Glorot's of each, deep encoders learn to make all positions the same."""
    model = kc.models.TransformerTranslator(
        tokenizer,
        tokenizer,
        num_layers=2,
        model_dim=32,
        num_heads=2,
        feedforward_dim=64,
    )
    kernels = [
        np.array(getattr(model.encoder.get_layer(block).attention, name).kernel)
        for block in ("encoder_0", "encoder_1")
        for name in ("query_dense", "key_dense", "value_dense")
    ]
    bound = (6 / (32 + 3 * 32)) ** 0.5
    for kernel in kernels:
        np.testing.assert_allclose(abs(kernel).max(), bound, rtol=0.02)
    for block in ("encoder_0", "encoder_1"):
        feedforward = model.encoder.get_layer(block).feedforward
        for layer in (feedforward.hidden_dense, feedforward.output_dense):
            bound = layer.kernel.shape[0] ** -0.5
            np.testing.assert_allclose(abs(np.array(layer.kernel)).max(), bound, 0.02)
    assert len(np.unique(np.stack(kernels), axis=0)) == len(kernels)


def test_embeddings_are_one_table_if_shared(tokenizer):
    separate, shared = (
        kc.models.TransformerTranslator(
            tokenizer, tokenizer, shared_embeddings=share, **TRANSFORMER
        )
        for share in (False, True)
    )
    size, dim = len(tokenizer), TRANSFORMER["model_dim"]
    assert separate.count_params() - shared.count_params() == 2 * size * dim + size
    assert sum(w.shape == (size, dim) for w in shared.weights) == 1


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("w1 w2", "list of str"),
        ([1], "list of str"),
        (["w1", ""], "Sentence 1 of the batch has no token"),
        ([], "no sentence"),
    ],
)
def test_wrong_sentences_are_refused(model, raw, message):
    with pytest.raises(kc.InputError, match=message):
        model.generate(raw)


def test_two_vocabularies_of_one_size_share_no_embeddings(tokenizer):
    other = type(tokenizer)([f"v{i}" for i in range(len(tokenizer) - 4)])
    shared = {**TRANSFORMER, "shared_embeddings": True}
    with pytest.raises(kc.InputError, match="`shared_embeddings` needs one vocabulary"):
        kc.models.TransformerTranslator(tokenizer, other, **shared)


def test_wrong_vocabularies_are_refused(tokenizer):
    for options, message in (
        ({"source_size": 5}, "needs a `target` or"),
        ({"target": tokenizer, "target_size": 5, "source_size": 9}, "target_size=5"),
        (
            {"source_size": 5, "target_size": 6, "shared_embeddings": True},
            "needs one vocabulary for source and target",
        ),
    ):
        with pytest.raises(kc.InputError, match=message):
            kc.models.TransformerTranslator(**{**TRANSFORMER, **options})
    model = kc.models.LSTMTranslator(source_size=9, target_size=9, **SIZES)
    with pytest.raises(kc.InputError, match="needs a dict of source"):
        model.generate_tokens(["w1"])
    tokens, _ = model.generate_tokens({"source": [[5, 6, EOS]]}, max_length=3)
    assert tokens.shape == (1, 3)
