import functools
import json
import os
import resource
import subprocess
import sys
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import PROJECT, random_images, tiny
from keras import ops

import keras_caption as kc
from keras_caption.models import compiled_searches

TOKENS = 8


def random_batch(rng, batch=3, captions=None):
    shape = (batch, TOKENS) if captions is None else (batch, captions, TOKENS)
    return {
        **random_images(rng, batch),
        "tokens": rng.integers(4, 34, shape).astype("int32"),
    }


@pytest.mark.parametrize(
    ("name", "layers", "millions"),
    [
        ("san", 1, 18.1),
        ("san", 2, 25.5),
        ("san", 4, 40.2),
        ("san", 6, 54.9),
        ("nsan", 4, 40.2),
        ("gsan_content_independent", 4, 40.2),
        ("gsan", 4, 41.5),
        ("ngsan", 4, 41.5),
    ],
)
def test_parameter_counts_of_the_papers(name, layers, millions):
    model = kc.models.create(name, vocabulary_size=9487, num_layers=layers)
    assert round(model.count_params() / 1e6, 1) == millions
    if name == "nsan":
        assert model.count_params() == 40_198_927  # SAN's


REGION_PRESETS = [
    n
    for n in kc.models.presets(kc.models.Captioner)
    if "region_dim" in kc.models.data_arguments(n)
]


@pytest.mark.parametrize("name", REGION_PRESETS)
def test_steps_are_teacher_forced_and_padding_never_leaks(name, rng):
    model = kc.models.create(name, vocabulary_size=34, **tiny(name))
    batch = random_batch(rng)
    logits = np.array(model(batch))
    assert np.isfinite(logits).all()

    state = model.start(model.encode(model.read(batch)), length=TOKENS)
    for t in range(TOKENS):
        step, state = model.step(batch["tokens"][:, t], state, t)
        np.testing.assert_allclose(np.array(step), logits[:, t], atol=1e-4)

    padded = ~batch["region_mask"][..., None]
    garbage = {
        **batch,
        "regions": np.where(padded, np.nan, batch["regions"]),
        "boxes": np.where(padded, np.inf, batch["boxes"]),
    }
    np.testing.assert_allclose(np.array(model(garbage)), logits, atol=1e-5)


def test_captions_of_one_image_do_not_mix(captioner, rng):
    batch = random_batch(rng, batch=2, captions=3)
    together = np.array(captioner(batch))
    assert together.shape == (2, 3, TOKENS, 34)
    for c in range(3):
        alone = captioner({**batch, "tokens": batch["tokens"][:, c]})
        np.testing.assert_allclose(np.array(alone), together[:, c], atol=1e-5)


def test_confidences_are_geometric_means_over_tokens(captioner):
    tokens = np.int32([[5, 6, kc.text.EOS, kc.text.PAD], [kc.text.PAD] * 4])
    scores = np.log(np.float32([0.125, 1.0]))
    found = captioner.confidences(tokens, scores)
    np.testing.assert_allclose(found, [0.5, 1.0], rtol=1e-6)


def test_tokens_do_not_look_ahead_and_all_regions_are_valid_without_a_mask(
    captioner, rng
):
    batch = random_batch(rng, batch=1)
    logits = np.array(captioner(batch))
    changed = batch["tokens"].copy()
    changed[:, 5:] = 4
    other = np.array(captioner({**batch, "tokens": changed}))
    np.testing.assert_allclose(other[:, :5], logits[:, :5], atol=1e-6)
    assert np.abs(other[:, 5:] - logits[:, 5:]).max() > 1e-3
    del batch["region_mask"]
    np.testing.assert_allclose(np.array(captioner(batch)), logits, atol=1e-6)


def test_loss_is_the_mean_over_tokens_and_eos(rng):
    model = kc.models.create("san", vocabulary_size=34, **tiny("san"), dropout=0.0)
    batch = random_batch(rng, batch=2, captions=2)
    batch["tokens"][:, :, 0] = 1
    for row, length in zip(batch["tokens"].reshape(4, -1), (8, 5, 3, 4), strict=True):
        row[length - 1 :] = 0
        row[length - 1] = 2
    probabilities = np.array(ops.softmax(model(batch)))
    losses = [
        -np.log(probabilities[i, c, t - 1, batch["tokens"][i, c, t]])
        for i in range(2)
        for c in range(2)
        for t in range(1, TOKENS)
        if batch["tokens"][i, c, t]
    ]
    inputs, targets, weights = kc.text.teacher_forcing(batch)
    loss = model.evaluate(inputs, targets, 2, sample_weight=weights, verbose=0)
    np.testing.assert_allclose(loss, np.mean(losses), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_close_and_trains(captioner, vocabulary, rng, dtype):
    model = kc.models.create(
        "ngsan", vocabulary=vocabulary, **tiny("ngsan"), dtype=dtype
    )
    model.set_weights(captioner.get_weights())
    model.run_eagerly = dtype == "mixed_bfloat16"  # one of two is compiled
    batch = random_batch(rng)
    logits, expected = np.array(model(batch)), np.array(captioner(batch))
    assert logits.dtype == "float32"
    np.testing.assert_allclose(logits, expected, atol=0.1)
    before = captioner.get_weights()
    losses = [model.train_on_batch(*kc.text.teacher_forcing(batch)) for _ in range(5)]
    assert np.isfinite(losses).all()
    assert any((a != b).any() for a, b in zip(model.get_weights(), before, strict=True))


def test_saved_model_captions_in_a_fresh_process(captioner, rng, tmp_path):
    batch = random_batch(rng)
    np.savez(tmp_path / "batch.npz", **batch)
    captioner.save(tmp_path / "model.keras")
    program = """
import sys, json, keras, numpy as np, keras_caption
model = keras.models.load_model(sys.argv[1] + "/model.keras")
batch = dict(np.load(sys.argv[1] + "/batch.npz"))
np.save(sys.argv[1] + "/logits.npy", np.array(model(batch)))
print(json.dumps(model.generate(batch, beam_size=1, max_length=6)))
keras.config.set_dtype_policy("mixed_bfloat16")
assert keras.models.load_model(sys.argv[1] + "/model.keras").compute_dtype == "float32"
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        text=True,
    )
    captions = json.loads(done.stdout.splitlines()[-1])
    assert captions == captioner.generate(batch, beam_size=1, max_length=6)
    np.testing.assert_allclose(
        np.load(tmp_path / "logits.npy"), np.array(captioner(batch)), atol=1e-6
    )
    assert "Skipping variable" not in done.stderr


def test_optimizer_is_saved_with_the_model(vocabulary, rng, tmp_path):
    model = kc.models.create("san", vocabulary=vocabulary, **tiny("san"))
    model.compile(
        optimizer=keras.optimizers.SGD(0.5), loss=kc.training.SequenceCrossEntropy(0.2)
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.optimizer, keras.optimizers.SGD)
    assert loaded.loss.label_smoothing == 0.2

    model = kc.models.create("san", vocabulary=vocabulary, **tiny("san"))
    model.train_on_batch(*kc.text.teacher_forcing(random_batch(rng)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for a, b in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
        np.testing.assert_array_equal(a, b)


def test_export_is_the_teacher_forced_call(captioner, rng, tmp_path):
    import tensorflow as tf

    captioner.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    batch = random_batch(rng)
    np.testing.assert_allclose(exported.serve(batch), captioner(batch), atol=1e-6)


def own_encoder(units=16):
    inputs = kc.inputs.Regions.symbolic(6)
    return keras.Model(inputs, keras.layers.Dense(units)(inputs["regions"]))


def own_decoder(size):
    attention = functools.partial(kc.layers.MultiHeadAttention, 2, 8)
    block = kc.layers.TransformerDecoderBlock(attention(), attention(), 32)
    return kc.models.TransformerDecoder(size, 16, [block])


def test_captioner_of_own_parts_is_checkpointed_loaded_and_cloned(
    vocabulary, rng, tmp_path
):
    model = kc.models.Captioner(own_encoder(), own_decoder(34), vocabulary)
    model.compile("adam", kc.training.SequenceCrossEntropy())
    images = random_images(rng)
    checkpoint = kc.training.Checkpoint(tmp_path)
    checkpoint.set_model(model)
    model.train_on_batch(*kc.text.teacher_forcing(random_batch(rng)))
    checkpoint.on_epoch_end(0, {"val_cider": 1.0})
    for name in ("best.keras", "last.keras"):
        loaded = kc.models.load(tmp_path / name)
        assert type(loaded) is kc.models.Captioner
        assert loaded.generate(images) == model.generate(images)
    clone = keras.models.clone_model(model)
    assert clone.vocabulary == vocabulary
    clone.set_weights(model.get_weights())
    assert clone.generate(images) == model.generate(images)


@pytest.mark.parametrize("name", ["ngsan_aoa", "aoanet", "area"])
def test_clone_has_weights_of_its_own(name, vocabulary):
    sizes = tiny(name)
    if name.startswith("area"):
        sizes.pop("region_dim")
        sizes |= {"grid_height": 3, "grid_width": 3, "grid_dim": 6, "area_layers": 1}
    model = kc.models.create(name, vocabulary=vocabulary, **sizes)
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss=model.loss)
    clone = keras.models.clone_model(model)
    assert type(clone) is type(model)
    assert clone.get_config() == model.get_config()
    assert isinstance(clone.optimizer, keras.optimizers.SGD)
    pairs = list(zip(model.weights, clone.weights, strict=True))
    assert all(a is not b and a.shape == b.shape for a, b in pairs)
    assert any((np.array(a) != np.array(b)).any() for a, b in pairs)


def test_quantized_captioner_saves_and_captions_alike(vocabulary, rng, tmp_path):
    model = kc.models.create("ngsan", vocabulary=vocabulary, **tiny("ngsan"))
    batch = random_batch(rng)
    images, logits = random_images(rng), np.array(model(batch))
    model.optimizer.build(model.trainable_variables)
    before = model.generate_tokens(images)[1]
    with warnings.catch_warnings():  # for each layer without a matrix product
        warnings.simplefilter("ignore")
        model.quantize("int8")
    dense = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.Dense)
    ]
    assert {layer.quantization_mode for layer in dense} == {"int8"}
    assert (model.generate_tokens(images)[1] != before).any()
    np.testing.assert_allclose(np.array(model(batch)), logits, atol=0.2)
    model.save(tmp_path / "model.keras")
    expected = model.generate_tokens(images)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of optimizers of other sizes
        loaded = keras.models.load_model(tmp_path / "model.keras")
    for found, of_model in zip(loaded.generate_tokens(images), expected, strict=True):
        np.testing.assert_allclose(found, of_model, atol=1e-5)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(batch), model(batch))


def test_failed_save_leaves_the_previous_file(captioner, tmp_path):
    path = tmp_path / "model.keras"
    captioner.save(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(OSError, match=r"."):
            captioner.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.keras"]


def test_mistakes_are_named(vocabulary, captioner, rng):
    with pytest.raises(kc.InputError, match="Did you mean ngsan"):
        kc.models.create("ngsam", vocabulary=vocabulary)
    with pytest.raises(kc.InputError, match=r"no 'colour'\. Valid names are vocab"):
        kc.models.create("san", vocabulary=vocabulary, colour=2)
    with pytest.raises(kc.InputError, match="Did you mean num_layers"):
        kc.models.create("ngsan", vocabulary=vocabulary, num_layer=2)
    with pytest.raises(ValueError, match=r"vocabulary_size=10, but .* 34 tokens"):
        kc.models.create("san", vocabulary=vocabulary, vocabulary_size=10)
    with pytest.raises(ValueError, match="needs a `vocabulary`"):
        kc.models.create("san")
    with pytest.raises(ValueError, match="cannot be divided"):
        kc.models.create("san", vocabulary=vocabulary, model_dim=100)
    images = random_images(rng)
    with pytest.raises(ValueError, match="Missing from the batch: boxes"):
        captioner.generate({"regions": images["regions"]})
    with pytest.raises(ValueError, match=r"\(3, 5\) regions and \(3, 4\) boxes"):
        captioner.generate({**images, "boxes": images["boxes"][:, :4]})
    nameless = kc.models.create("san", vocabulary_size=34, **tiny("san"))
    with pytest.raises(ValueError, match="without a vocabulary"):
        nameless.generate(images)
    with pytest.raises(kc.InputError, match=r"no targets: map .*teacher_forcing"):
        nameless.train_on_batch(random_batch(rng))
    dataset = tf.data.Dataset.from_tensors(images)
    for train, given in (
        (nameless, images),
        (kc.text.teacher_forcing, images),
        (nameless.train_on_batch, images),
        (dataset.map, kc.text.teacher_forcing),  # which AutoGraph traces
        (tf.function(nameless), images),
    ):
        with pytest.raises(kc.InputError, match=r"^.* dicts that hold `tokens`"):
            train(given)
    keras.config.set_floatx("float64")
    try:
        with pytest.raises(kc.InputError, match=r"Keras.s floatx is float64"):
            kc.models.create("san", vocabulary=vocabulary, **tiny("san"))
    finally:
        keras.config.set_floatx("float32")


def test_functions_of_the_last_options_are_kept(vocabulary, monkeypatch):
    monkeypatch.setattr(compiled_searches, "MAX_COMPILED", 2)
    monkeypatch.setattr(
        compiled_searches, "compile_function", lambda function, *_: function
    )
    model = kc.models.create("san", vocabulary=vocabulary, **tiny("san"))
    options = [model.decoding.override(max_length=n) for n in (4, 5, 6)]

    def compiled(i):
        return model.backend.compiled(compiled_searches.whole, options[i])

    first, second = compiled(0), compiled(1)
    assert compiled(0) is first
    compiled(2)  # in place of the second, which was not used since
    assert compiled(0) is first
    assert compiled(1) is not second
    assert len(model.backend.functions) == 2
