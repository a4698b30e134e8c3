"""Captioners of videos: their encoders, their masks, training, serving, figures."""

import io

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import check_trains_and_saves, tiny
from keras import ops

import keras_caption as kc
from keras_caption.apps.report.tasks.captioning_examples import attention_of_captions
from keras_caption.apps.report.visualization.attention import own_panels

FRAME_DIM = 6
NAMES = "video_transformer", "video_nsa", "video_base", "video_aoa"
AREAS = {"input_area": 3, "combined_features": True, "temperature": "length"}
LENGTHS = 7, 4, 1


def create(name, vocabulary=None, **options):
    sizes = tiny(name, **{"num_layers": 1, "frame_dim": FRAME_DIM, **options})
    del sizes["region_dim"]
    words = {"vocabulary": vocabulary} if vocabulary else {"vocabulary_size": 34}
    return kc.models.create(name, **words, **sizes)


def random_videos(rng):
    """Three videos, the later two of which are padded."""
    frames = rng.normal(size=(3, LENGTHS[0], FRAME_DIM)).astype("float32")
    mask = np.arange(LENGTHS[0]) < np.array(LENGTHS)[:, None]
    return {"frames": frames, "frame_mask": mask}


def logits_of(model, videos):
    tokens = np.int32([[1, 5, 6, 7, 8]] * len(videos["frames"]))
    return ops.convert_to_numpy(model({**videos, "tokens": tokens}))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in NAMES),
        ("video_nsa", {**AREAS, "output_area": 2, "key_norm": "batch", "gate": "aoa"}),
        ("video_aoa", {**AREAS, "num_layers": 2}),
    ],
)
def test_padded_frames_never_leak(name, options, rng):
    model = create(name, **options)
    videos = random_videos(rng)
    logits = logits_of(model, videos)
    memory = model.encode(videos)
    state = model.start(memory, length=5)
    for t, token in enumerate((1, 5, 6, 7, 8)):
        step, state = model.step(np.int32([token] * 3), state, t)
        np.testing.assert_allclose(step, logits[:, t], atol=1e-4)
    padded = ~videos["frame_mask"][..., None]
    for garbage in (np.nan, 1e4):
        spoilt = {**videos, "frames": np.where(padded, garbage, videos["frames"])}
        np.testing.assert_allclose(logits_of(model, spoilt), logits, atol=1e-5)
    for i, length in enumerate(LENGTHS):
        alone = logits_of(model, {"frames": videos["frames"][i : i + 1, :length]})
        np.testing.assert_allclose(alone[0], logits[i], atol=1e-5)
    weights = ops.convert_to_numpy(model.attention(np.int32([[1, 5]] * 3), memory))
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    assert (weights * padded[:, None, :, 0]).max() < 1e-6


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(frames, weights):
    """States of an LSTM after every frame, in float64: gates i, f, c and o."""
    kernel, recurrent, bias = (np.asarray(x, "float64") for x in weights)
    hidden = cell = np.zeros(recurrent.shape[0])
    states = []
    for frame in frames:
        z = np.split(frame @ kernel + hidden @ recurrent + bias, 4)
        cell = sigmoid(z[1]) * cell + sigmoid(z[0]) * np.tanh(z[2])
        hidden = sigmoid(z[3]) * np.tanh(cell)
        states.append(hidden)
    return np.array(states)


def test_frames_are_read_in_both_directions(rng):
    model = create("video_base")
    videos = random_videos(rng)
    videos["frame_mask"][0, 2] = False  # is skipped, as if it were not there
    memory = ops.convert_to_numpy(model.encode(videos)["memory"])
    weights = model.encoder.get_layer("encoder_0").get_weights()
    for frames, mask, found in zip(*videos.values(), memory, strict=True):
        valid = frames[mask].astype("float64")
        forward, backward = lstm(valid, weights[:3]), lstm(valid[::-1], weights[3:])
        expected = np.concatenate([forward, backward[::-1]], axis=-1)
        np.testing.assert_allclose(found[mask], expected, atol=1e-5)


@pytest.mark.parametrize("positions", [True, False])
def test_positions_are_what_tells_the_order(positions, rng):
    model = create("video_nsa", positions=positions)
    videos = {"frames": random_videos(rng)["frames"]}
    reverse = {"frames": videos["frames"][:, ::-1]}
    difference = np.abs(logits_of(model, videos) - logits_of(model, reverse)).max()
    assert difference > 1e-3 if positions else difference < 1e-5


def test_presets_are_the_papers():
    transformer, nsa, base, aoa = (
        kc.models.create(name, vocabulary_size=100) for name in NAMES
    )
    for model in (transformer, nsa):
        [block] = model.decoder.blocks
        encoder = model.encoder.get_layer("encoder_0")
        sizes = block.cross_attention.num_heads, encoder.feedforward_dim
        assert (*sizes, model.model_dim) == (8, 2048, 512)
        assert block.cross_attention.query_norm is None
    assert nsa.count_params() == transformer.count_params()
    normalized = nsa.encoder.get_layer("encoder_0").attention.query_norm
    assert isinstance(normalized, kc.layers.InstanceNormalization)
    assert base.decoder.gate is None
    assert aoa.decoder.gate is not None
    assert base.encoder.output.shape[-1] == aoa.decoder.model_dim == 1024
    without_areas = create("video_aoa", **AREAS, area_layers=0)
    assert without_areas.decoder.attention.memory is None


@pytest.mark.parametrize("name", ["video_nsa", "video_aoa"])
def test_videos_train_and_save(name, rng, tmp_path, vocabulary):
    model = create(name, vocabulary)
    model.run_eagerly = True
    check_trains_and_saves(model, random_videos(rng), rng, tmp_path)


def make_examples(rng):
    """A dataset of three videos."""

    def examples():
        for number, length in enumerate(LENGTHS):
            yield {
                "image_id": number,
                "frames": rng.normal(size=(length, FRAME_DIM)),
                "times": np.arange(length) / 2,
                "words": [f"w{number} w5", f"w6 w{number} w7"],
            }

    signature = {
        "image_id": tf.TensorSpec((), tf.int64),
        "frames": tf.TensorSpec((None, FRAME_DIM), tf.float16),
        "times": tf.TensorSpec((None,), tf.float32),
        "words": tf.TensorSpec((None,), tf.string),
    }
    made = tf.data.Dataset.from_generator(examples, output_signature=signature)
    return made.apply(tf.data.experimental.assert_cardinality(3)).cache()


def test_videos_are_trained_as_images_are(rng, vocabulary):
    keras.utils.set_random_seed(0)  # captions are sampled whose rewards differ
    examples = make_examples(rng)
    assert kc.inputs.sizes_of(examples.element_spec) == {"frame_dim": FRAME_DIM}
    model = create("video_nsa", vocabulary)
    optimizer = keras.optimizers.SGD(0.1)
    model.compile(optimizer, kc.losses.SequenceCrossEntropy(), run_eagerly=True)
    batches = kc.batches.train_batches(
        examples, vocabulary, 3, inputs=model.input_specs
    )
    sampling = kc.training.ScheduledSamplingTrainer(model, lambda step: 0.5)
    sampling.run_eagerly = True
    references = kc.batches.reference_tokens(examples, vocabulary)
    reward = kc.rewards.CiderD.from_references(references)
    trainer = kc.training.SelfCritical(model, reward, samples=8, max_length=8)
    trainer.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    for trained in (sampling, trainer):
        before = model.get_weights()
        history = trained.fit(batches, steps_per_epoch=1, shuffle=False, verbose=0)
        assert np.isfinite(history.history["loss"]).all()
        pairs = zip(before, model.get_weights(), strict=True)
        assert any((a != b).any() for a, b in pairs)

    [batch] = kc.batches.image_batches(examples, 3, model.input_specs)
    np.testing.assert_array_equal(np.sum(batch["frame_mask"], axis=1), LENGTHS)
    assert "times" not in batch
    short = {"beam_size": 2, "max_length": 4}
    captions = model.caption([batch], **short)
    alone = {name: batch[name][1:2, : LENGTHS[1]] for name in model.input_specs}
    assert model.generate(alone, **short) == [captions[1]]


def test_an_ensemble_of_videos_is_served(rng, tmp_path, vocabulary):
    members = [create(name, vocabulary) for name in ("video_nsa", "video_aoa")]
    ensemble = kc.models.Ensemble(members)
    videos = random_videos(rng)
    short = {"beam_size": 2, "max_length": 4}
    captions = ensemble.generate(videos, **short)
    scores = ensemble.generate_tokens(videos, **short)[1]
    kc.serving.export(ensemble, tmp_path / "1", **short)
    served = tf.saved_model.load(str(tmp_path / "1")).signatures
    # Padded as TensorFlow Serving pads; then three videos with a fault.
    mask = videos["frame_mask"][..., None]
    frames = np.where(mask, videos["frames"], videos["frames"].flat[0])
    faulty = np.repeat(frames[:1], 3, axis=0)
    faulty[0, 3] = np.nan
    answer = served["serving_default"](
        frames=tf.constant(np.concatenate([frames, faulty])),
        num_frames=tf.constant([*LENGTHS, 7, 0, 8]),
    )
    texts = [text.decode() for text in answer["captions"].numpy()]
    assert texts == [*captions, "", "", ""]
    np.testing.assert_allclose(answer["scores"][:3], scores, atol=1e-5)
    assert np.isneginf(answer["scores"][3:]).all()
    long = tf.zeros((1, 1025, FRAME_DIM))
    answer = served["greedy"](frames=long, num_frames=tf.constant([1025]))
    assert answer["captions"].numpy() == [b""]


def test_attention_lights_the_frames_of_a_film_strip(rng, vocabulary):
    model = create("video_nsa", vocabulary)
    frames = rng.normal(size=(1, 5, FRAME_DIM)).astype("float32")
    inputs = {"frames": frames, "times": np.float32([[0, 0.5, 1, 1.5, 12.25]])}
    tokens = [5, 6, 7, kc.text.EOS, kc.text.PAD]
    weights = kc.visualization.attention_over_memory(model, inputs, tokens)[1]
    strip = np.zeros((8, 53, 3), "uint8")  # frames of 10 or 11 columns
    figure = kc.visualization.attention_over_words(model, inputs, tokens, strip)
    panels = figure.axes
    assert panels[0].get_ylabel() == "all words"
    assert {*[panel.get_ylabel() for panel in panels[1:]]} <= {"w1", "w2", "w3"}
    mean = weights[:3].mean(axis=0)  # without <eos>
    most = max(bar.get_height() for p in panels for bar in p.patches)
    for panel in panels:
        shown = np.array(panel.images[0].get_array())
        np.testing.assert_array_equal(shown, strip)  # in its own colours
    heights = np.array([-bar.get_height() for bar in panels[0].patches])
    np.testing.assert_allclose(heights / heights.sum(), mean, rtol=1e-5)
    assert most <= 0
    labels = [label.get_text() for label in panels[-1].get_xticklabels()]
    assert labels == ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "12.2 s"]
    tops = [panel.get_position().y1 for panel in panels]
    assert tops == sorted(tops, reverse=True)
    # Without a strip and times; a report shows several captions.
    captions = [({"frames": frames}, np.array(tokens), None)] * 2
    figure = kc.visualization.attention_over_captions(model, captions)
    assert len(figure.axes) == 2 * len(panels)
    assert not figure.axes[0].get_xticks().size
    # The page of a run: of a batch of several, whose padding has no weight.
    videos = {"frames": [frames[0, :2], frames[0]]}
    videos = kc.datasets.from_arrays(videos, [["w1"]] * 2, ["test"] * 2)
    short, whole = attention_of_captions(
        model, kc.datasets.read(videos, "test"), dict.fromkeys(range(2), "w1 w2 w3")
    )
    assert whole[:2] == (1, ["w1", "w2", "w3"])
    np.testing.assert_allclose(whole[2].weights, weights[:3], atol=1e-5)
    np.testing.assert_allclose(whole[2].areas[1], [0.2, 0, 0.4, 1])
    assert not short[2].weights[:, 2:].any()


def test_only_words_that_attend_to_something_of_their_own_have_a_panel():
    weights = np.array([[0.5, 0.5], [0.7, 0.3], [0.1, 0.9], [1.0, 0.0]])
    words = ["a", "dog", "barks", "<eos>"]
    (first, mean), *own = own_panels(words, weights)
    assert first == "all words"
    np.testing.assert_allclose(mean, [1.3 / 3, 1.7 / 3])
    assert [word for word, _ in own] == ["dog", "barks"]
    np.testing.assert_array_equal(own[1][1], weights[2])
    assert own_panels(["<eos>"], weights[:1])[0][0] == "all words"


def test_attention_that_cannot_be_shown_is_named(rng):
    vocabulary = kc.text.Vocabulary(["$x^{$", "w2"])
    model = create("video_nsa", vocabulary)
    frames = rng.normal(size=(2, 5, FRAME_DIM)).astype("float32")
    one, tokens = {"frames": frames[:1]}, np.array([4, 5, kc.text.EOS])
    figure = kc.visualization.attention_over_words(model, one, tokens)
    figure.savefig(io.BytesIO())  # $ begins no formula
    unknown = {"frames": np.full((1, 5, FRAME_DIM), np.nan)}
    for inputs, caption, message in [
        ({"frames": frames}, tokens, r"one video: .*Received: a batch of 2"),
        (one, [tokens, tokens], r"one caption: .*Received: \(2, 3\)"),
        (one, ([tokens], [[0.0]]), r"one caption: .*Received: a tuple of 2"),
        (one, [], "has no tokens"),
        (one, [kc.text.PAD, kc.text.PAD], "has no tokens"),
        (unknown, tokens, "Video 0 of the batch has frames that are not finite"),
    ]:
        for show in (
            kc.visualization.attention_over_memory,
            kc.visualization.attention_over_words,
            lambda model, *of_one: kc.visualization.attention_over_captions(
                model, [(*of_one, None)]
            ),
        ):
            with pytest.raises(kc.InputError, match=message):
                show(model, inputs, caption)
    with pytest.raises(kc.InputError, match="no caption to show"):
        kc.visualization.attention_over_captions(model, [])


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("video_nsa", {"geometry": "query"}, "has no 'geometry'"),
        ("video_nsa", {"input_area": 0}, "`input_area`: "),
        ("video_nsa", {"input_area": 65}, "`input_area`: .* less than or equal to 64"),
        ("video_aoa", {"model_dim": 7, "decoder_heads": 1}, "should be even"),
        ("video_aoa", {"context": "gru"}, "`context` must be one of"),
    ],
)
def test_what_makes_no_sense_is_refused(name, options, problem):
    with pytest.raises(kc.InputError, match=problem):
        kc.models.create(name, vocabulary_size=9, **options)
