"""MCAN, held to outputs and gradients of the authors' code."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, read_oracle, tiny
from keras_caption.convert import convert_mcan

import keras_caption as kc
from keras_caption.apps.report.tasks import question_answering as report
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
    found = keras.Model(encoder.input, outputs)(official.read(inputs))
    for name, theirs in expected.items():
        # Ours has zeros in padded regions, as the official inputs have.
        np.testing.assert_allclose(found[name], oracle[theirs], atol=1e-5, err_msg=name)
    np.testing.assert_allclose(official(inputs), oracle["logits"], atol=1e-5)
    guided = official.attention(official.read(inputs))
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


def test_parameters_are_as_many_as_of_the_released_model():
    answers = [f"a{i}" for i in range(3129)]
    model = kc.models.create("mcan", answers=answers, question_size=2)
    # Without the embedding, and the second bias of PyTorch's LSTM.
    assert model.count_params() - 2 * 300 == 51_640_891 - 4 * 512


TOKENIZER = kc.text.QuestionTokenizer(WORDS)
QUESTIONS = ["w1 w2?", "W3-w4 zebra, w5", ""]
GEOMETRY = {"query_norm": "instance", "geometry": "absolute+query", "gate": "aoa"}


def make(name="mcan_gsa", **more):
    keras.utils.set_random_seed(0)
    sizes = tiny(name, pooling_dim=8, fusion_dim=24, **more)
    return kc.models.create(name, answers=ANSWERS, question=TOKENIZER, **sizes)


@pytest.fixture(scope="module")
def model():
    return make(input_area=2, **GEOMETRY)


def probabilities(model, images, questions):
    tokens = model.question_tokens(questions)
    return np.array(model.probabilities(model.read({**images, "question": tokens})))


def test_padding_changes_no_answer(model, rng):
    images = random_images(rng)
    expected = probabilities(model, images, QUESTIONS)
    spoilt = {**images, "regions": images["regions"].copy()}
    spoilt["regions"][~images["region_mask"]] = 1e3
    # With longer questions in the batch, and more tokens than are read.
    tokens = np.pad(model.question_tokens(QUESTIONS), ((0, 0), (0, 16)))
    tokens[0, 14:] = 5
    tokens[0, 2:14] = 0
    found = model.probabilities(model.read({**spoilt, "question": tokens}))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for i, question in enumerate(QUESTIONS):
        valid = images["region_mask"][i]
        one = {name: images[name][i : i + 1, valid] for name in ("regions", "boxes")}
        found = probabilities(model, one, [question])
        np.testing.assert_allclose(found[0], expected[i], atol=1e-5)


def test_a_question_without_known_words_has_an_answer(model, rng):
    images = random_images(rng)
    empty, unknown, marks = probabilities(model, images, ["", "zebra", "?!"])
    assert np.isfinite([empty, unknown, marks]).all()
    same = {name: np.repeat(x[:1], 3, axis=0) for name, x in images.items()}
    rows = probabilities(model, same, ["", "zebra", "..."])
    np.testing.assert_allclose(rows, rows[[0, 0, 0]], atol=1e-6)
    # MCAN's code attends to padding alone evenly; so do our layers.
    pooling = model.encoder.get_layer("pooled_question")
    words = rng.normal(size=(1, 4, 16)).astype("float32")
    none = np.zeros((1, 4), bool)
    _, weights = pooling(words, mask=none, return_attention_scores=True)
    np.testing.assert_allclose(weights, 0.25)


def test_geometry_is_in_the_self_attention_of_regions_only(model):
    layer = model.encoder.get_layer
    for i in range(2):
        attention = layer(f"regions_{i}").attention
        assert None not in (attention.bias, attention.memory, attention.gate)
        guided = layer(f"regions_{i}").guided_attention
        for plain in (layer(f"question_{i}").attention, guided):
            assert {plain.bias, plain.memory, plain.gate, plain.query_norm} == {None}
    layer = make(geometry_layers=1).encoder.get_layer
    assert layer("regions_0").attention.bias is not None
    assert layer("regions_1").attention.bias is None
    assert make("mcan").ignored_inputs == ("boxes",)


def test_it_learns_and_is_saved(rng, tmp_path):
    model = make(num_layers=1)
    images = {**random_images(rng), "question": model.question_tokens(QUESTIONS)}
    scores = np.eye(20, dtype="float32")[[3, 7, 11]]
    model.compile(
        keras.optimizers.SGD(0.2, clipnorm=1.0), AnswerCrossEntropy(), jit_compile=False
    )
    losses = model.fit(images, scores, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 2 < 14 < losses[0]
    del images["question"]
    assert model.answer(images, QUESTIONS) == ["a3", "a7", "a11"]
    model.save(tmp_path / "best.keras")
    loaded = kc.models.load(tmp_path)
    assert loaded.get_config() == model.get_config()
    expected = probabilities(model, images, QUESTIONS)
    np.testing.assert_array_equal(probabilities(loaded, images, QUESTIONS), expected)


def test_one_answer_is_right_or_several_are(rng):
    images = random_images(rng)
    batch = len(QUESTIONS)
    right = np.eye(20, dtype="float32")[np.arange(batch)]
    right[-1] = 0  # unknown
    for multi_label in (True, False):
        model = make("mcan", multi_label=multi_label)
        inputs = {**images, "question": model.question_tokens(QUESTIONS)}
        logits = np.array(model(inputs), "float64")
        each = 1 / (1 + np.exp(-logits))
        losses = -np.log(np.where(right > 0, each, 1 - each)).sum(axis=1)
        if not multi_label:
            each = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            losses = -(right * np.log(each)).sum(axis=1)
        found = model.probabilities(model.read(inputs))
        np.testing.assert_allclose(found, each, rtol=1e-5)
        loss = model.evaluate(inputs, right, batch_size=batch, verbose=0)
        np.testing.assert_allclose(loss, losses.mean(), rtol=1e-5)
        assert model.get_config()["multi_label"] is multi_label


def test_two_regions_of_a_word_are_drawn(model, rng):
    images = random_images(rng)
    one = {
        name: images[name][:1, images["region_mask"][0]]
        for name in ("regions", "boxes")
    }
    size = one["boxes"].shape[1] + 3
    for count in (size - 3, 2):  # of which padding is never drawn
        padded = {
            name: np.pad(x[:, :count], [(0, 0), (0, size - count), (0, 0)])
            for name, x in one.items()
        }
        text = "w1, w2 zebra?"
        figure = kc.visualization.attention_over_question(model, padded, text)
        assert [panel.get_title() for panel in figure.axes] == ["w1", "w2", "zebra"]
        inputs = {**padded, "question": model.question_tokens([text])}
        weights = np.array(model.attention(model.read(inputs)))[0, :count]
        for panel, of_word in zip(figure.axes, weights.T, strict=False):
            frames = [frame for frame in panel.patches if frame.get_alpha() > 0]
            corners = {tuple(frame.get_xy()) for frame in frames}
            height, width = panel.images[0].get_array().shape[:2]
            most = np.argsort(of_word)[-2:]
            boxes = padded["boxes"][0, most, :2] * [width, height]
            assert corners == {tuple(box) for box in boxes}
    with pytest.raises(kc.InputError, match="no word in the question"):
        kc.visualization.attention_over_question(model, one, "?")
    with pytest.raises(kc.InputError, match="differ in their number of images"):
        kc.visualization.attention_over_question(model, images, "w1")


def test_questions_without_words_are_not_drawn(model, rng, tmp_path, monkeypatch):
    scene = {name: x[1] for name, x in random_images(rng).items() if x.ndim > 2}
    data = types.SimpleNamespace(
        questions={
            "test": [
                types.SimpleNamespace(image_id=7, text=text)
                for text in ("?", "w1", "!")
            ]
        },
        images=lambda *_, **__: tf.data.Dataset.from_tensors({**scene, "image_id": 7}),
    )
    monkeypatch.setattr(report, "DRAWN", 1)
    for seed in range(3):
        monkeypatch.setattr(report.random, "Random", lambda _, seed=seed: Chosen(seed))
        report.draw_attention(model, data, tmp_path / "attention.png")


class Chosen:
    """Chooses one of some texts, by its place."""

    def __init__(self, place):
        self.place = place

    def choice(self, texts):
        return texts[self.place % len(texts)]


def test_word_vectors_are_loaded(tmp_path):
    model = make("mcan", embedding_dim=3)
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2 3\nw3 -1 0.5 2e-1\n. . 3 4 5\nw20 7 8 9\n")
    assert model.load_word_vectors(path) == 2
    table = np.array(model.encoder.get_layer("embedding").embeddings)
    np.testing.assert_allclose(table[[4 + 3, 4 + 20]], [[-1, 0.5, 0.2], [7, 8, 9]])
    assert not table[[3, 5]].any()
    for line, problem in (
        ("w3 1 2 3 4", "line 1, has a vector of 4 numbers; .* embeddings have 3"),
        ("w3 1 2 x", "line 1, has no vector of finite numbers"),
        ("the 1 2 3", "has a vector for none of the model's words"),
    ):
        path.write_text(line + "\n")
        with pytest.raises(kc.InputError, match=rf"glove\.txt.*{problem}"):
            model.load_word_vectors(path)


def test_mistakes_are_named(model, rng):
    images = random_images(rng)
    tokens = np.full((3, 2), 99)
    for arguments, problem in (
        (({}, QUESTIONS), "Missing from the batch: regions, boxes"),
        ((images, None), "Missing from the batch: question"),
        ((images, ["w1"]), "Every question needs an image of its own.*'question': 1"),
        ((images, "w1"), "Questions should be a list of str. Received: 'w1'"),
        (({**images, "question": tokens}, None), "Question 0 of the batch has tokens"),
        ((["photo.jpg"], ["w1"]), "it has no `extractor` for photos"),
    ):
        with pytest.raises(kc.InputError, match=problem):
            model.answer(*arguments)
    with pytest.raises(kc.InputError, match="knows 20 answers, not 21"):
        model.answer_n_best(images, QUESTIONS, 21)
    with pytest.raises(kc.InputError, match=r"no 'answer'\. Did you mean answers"):
        kc.models.create("mcan", answer=ANSWERS)
