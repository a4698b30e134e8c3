"""Models that answer questions, averaged and exported."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from keras import ops
from yolox_file import white_yolox

import keras_caption as kc

ANSWERS = ["yes", "no", "", "two", "red", "left", "right"]
TOKENIZER = kc.text.QuestionTokenizer(["is", "it", "red"])
QUESTIONS = ["Is it red?", "zebra", "?"]
SIZE = 32


def make(name, extractor=None, **more):
    sizes = tiny(name, num_layers=1, pooling_dim=8, fusion_dim=12, **more)
    return kc.models.create(
        name, answers=ANSWERS, question=TOKENIZER, extractor=extractor, **sizes
    )


@pytest.fixture(scope="module")
def members():
    keras.utils.set_random_seed(0)
    return [make("mcan"), make("mcan_gsa")]


@pytest.fixture(scope="module")
def ensemble(members, tmp_path_factory):
    """An ensemble of a file and a model."""
    path = tmp_path_factory.mktemp("saved") / "mcan.keras"
    members[0].save(path)
    return kc.models.ClassifierEnsemble([path, members[1]])


def load(model, folder):
    kc.serving.export(model, folder / "mcan" / "1")
    return tf.saved_model.load(str(folder / "mcan" / "1")).signatures


def texts(values):
    return np.vectorize(bytes.decode)(values.numpy()).tolist()


def test_probabilities_are_averaged_and_served(members, ensemble, rng, tmp_path):
    images = random_images(rng)
    images["boxes"][~images["region_mask"]] = 0.0
    inputs = {**images, "question": members[0].question_tokens(QUESTIONS)}
    mean = np.mean([ops.sigmoid(member(inputs)) for member in members], axis=0)
    best = ensemble.answer_n_best(images, QUESTIONS, 7)
    for row, expected in zip(best, mean, strict=True):
        found = [dict(row)[answer] for answer in ANSWERS]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert ensemble.answer(images, QUESTIONS) == [row[0][0] for row in best]

    served = load(ensemble, tmp_path)
    assert set(served) == {"serving_default", "features", "tokens"}
    images["boxes"][1] = 0.0  # no valid region
    signature = served["serving_default"]
    inputs = {name: tf.constant(images[name]) for name in ("regions", "boxes")}
    outputs = signature(**inputs, question=tf.constant(QUESTIONS))
    assert texts(outputs["answers"]) == [best[0][0][0], "", best[2][0][0]]
    for i in (0, 2):
        names, scores = zip(*best[i][:5], strict=True)
        assert texts(outputs["best_answers"][i]) == list(names)
        np.testing.assert_allclose(outputs["best_scores"][i], scores, atol=1e-6)
    assert texts(outputs["best_answers"][1]) == [""] * 5
    np.testing.assert_array_equal(outputs["best_scores"][1], [-np.inf] * 5)
    np.testing.assert_array_equal(outputs["scores"], outputs["best_scores"][:, 0])
    question = tf.constant(members[0].question_tokens(QUESTIONS))
    by_ids = served["tokens"](**inputs, question=question)
    assert by_ids["best_ids"].dtype == "int32"
    for i in (0, 2):
        ids = by_ids["best_ids"][i].numpy()
        assert [ANSWERS[x] for x in ids] == texts(outputs["best_answers"][i])
    np.testing.assert_allclose(by_ids["best_scores"], outputs["best_scores"], atol=1e-6)


def windows():
    """An extractor of windows, and the size of their features."""
    extractor = kc.features.Extractor(
        "MobileNet", image_size=SIZE, levels=(1, 2), arguments={"alpha": 0.25}
    )
    return extractor, extractor.grid_shape[-1]


def objects():
    """A detector of white cells, and the number of its categories."""
    return kc.objects.Yolox(white_yolox(), image_size=64), 80


@pytest.mark.parametrize("extractor", [windows, objects])
def test_questions_about_photos_are_served(extractor, rng, tmp_path):
    extractor, region_dim = extractor()
    model = make("mcan_gsa", extractor, region_dim=region_dim)
    photos = rng.integers(0, 256, (2, 40, 50, 3)).astype("uint8")
    photos[0, :30, :30] = 255
    expected = model.answer_n_best(list(photos), QUESTIONS[:2], 1, batch_size=1)
    served = load(model, tmp_path)
    files = [tf.io.encode_png(photo).numpy() for photo in photos]
    outputs = served["photos"](
        image_bytes=tf.constant([*files, b"no photo"]), question=tf.constant(QUESTIONS)
    )
    assert texts(outputs["answers"])[:2] == [row[0][0] for row in expected]
    scores = [row[0][1] for row in expected]
    np.testing.assert_allclose(outputs["scores"], [*scores, -np.inf], atol=1e-5)
    none = tf.zeros((0,), tf.string)
    nothing = served["photos"](image_bytes=none, question=none)
    assert nothing["best_scores"].shape == (0, 5)


def test_members_must_fit(members, captioner, tmp_path):
    other = kc.models.create(
        "mcan", answers=ANSWERS[::-1], question=TOKENIZER, **tiny("mcan", num_layers=1)
    )
    with pytest.raises(kc.InputError, match=r"Member 2 .* has other answers"):
        kc.models.ClassifierEnsemble([members[0], other])
    with pytest.raises(kc.InputError, match="is a NGSAN, not a model that answers"):
        kc.models.ClassifierEnsemble([captioner])
    with pytest.raises(kc.InputError, match="is a MCAN, not a captioner"):
        kc.models.Ensemble([members[0]])
    with pytest.raises(kc.InputError, match="there is no option 'beam_size'"):
        kc.serving.export(members[0], tmp_path / "1", beam_size=3)
