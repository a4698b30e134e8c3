import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from keras import ops

import keras_caption as kc
from keras_caption.text import PAD


@pytest.fixture(scope="module")
def members(vocabulary):
    keras.utils.set_random_seed(4)  # with which captions repeat themselves
    return [
        kc.models.create(name, vocabulary=vocabulary, **tiny(name, num_layers=1))
        for name in ("ngsan", "aoanet")
    ]


def check_scores(log_probs, tokens, scores):
    """Scores of captions are the sums of their tokens' log-probabilities."""
    of_words = np.take_along_axis(log_probs, tokens[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose((of_words * (tokens != PAD)).sum(-1), scores, atol=1e-4)


def test_probabilities_are_averaged(members, rng, tmp_path):
    paths = [tmp_path / f"{member.name}.keras" for member in members]
    for member, path in zip(members, paths, strict=True):
        member.save(path)
    ensemble = kc.models.Ensemble(paths)
    images = random_images(rng)
    tokens, scores = ensemble.generate_tokens(images, max_length=7)
    previous = np.pad(tokens[:, :-1], [(0, 0), (1, 0)], constant_values=kc.text.BOS)
    p = [
        np.array(ops.softmax(member({**images, "tokens": previous})))
        for member in members
    ]
    mean = np.log(np.mean(p, axis=0))
    check_scores(mean, tokens, scores)
    assert len(ensemble.generate(images, beam_size=1)) == 3
    weights = np.array(
        ensemble.attention(previous, ensemble.encode(ensemble.read(images)))
    )
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)


def test_regions_and_grids(members, vocabulary, rng):
    of_grid = kc.models.create(
        "area_regular",
        vocabulary=vocabulary,
        grid_height=2,
        grid_width=3,
        grid_dim=4,
        num_layers=1,
        model_dim=16,
        num_heads=2,
        feedforward_dim=32,
    )
    ensemble = kc.models.Ensemble([members[0], of_grid])
    grid = rng.normal(size=(3, 2, 3, 4)).astype("float32")
    images = {**random_images(rng), "grid": grid}
    tokens, scores = ensemble.generate_tokens(images, beam_size=1, max_length=4)
    previous = np.pad(tokens[:, :-1], [(0, 0), (1, 0)], constant_values=kc.text.BOS)
    log_probs = np.array(
        ensemble.logits(previous, ensemble.encode(ensemble.read(images)))
    )
    check_scores(log_probs, tokens, scores)
    weights = np.array(
        ensemble.attention(previous, ensemble.encode(ensemble.read(images)))
    )
    assert weights.shape == (3, 4, 6)


def test_one_savedmodel(members, rng, tmp_path):
    ensemble = kc.models.Ensemble(members)
    options = {"max_length": 7, "no_repeat_ngram": 2}
    kc.serving.export(ensemble, tmp_path / "both" / "1", **options)
    served = tf.saved_model.load(str(tmp_path / "both" / "1"))
    images = random_images(rng)
    images["boxes"][~images["region_mask"]] = 0.0
    images["boxes"][1] = 0.0  # no valid region
    inputs = {k: tf.constant(images[k]) for k in ("regions", "boxes")}
    answer = served.signatures["serving_default"](**inputs)
    captions = [caption.decode() for caption in answer["captions"].numpy()]
    valid = {name: values[[0, 2]] for name, values in images.items()}
    expected = ensemble.generate(valid, **options)
    assert expected != ensemble.generate(valid, max_length=7)
    assert captions == [expected[0], "", expected[1]]


def test_members_must_fit(members, vocabulary, tmp_path):
    other = kc.models.create("san", vocabulary=kc.text.Vocabulary(["a"]), **tiny("san"))
    with pytest.raises(kc.InputError, match=r"Member 2 .* has another vocabulary"):
        kc.models.Ensemble([members[0], other])
    wide = kc.models.create(
        "san", vocabulary=members[0].vocabulary, **{**tiny("san"), "region_dim": 7}
    )
    with pytest.raises(kc.InputError, match=r"reads regions of shape .*7\)"):
        kc.models.Ensemble([members[0], wide])
    with pytest.raises(kc.InputError, match=r"no saved model .*best\.keras"):
        kc.models.Ensemble([tmp_path])
    keras.Sequential([keras.Input((2,))]).save(tmp_path / "best.keras")
    with pytest.raises(kc.InputError, match=r"best\.keras is a Sequential"):
        kc.models.Ensemble([tmp_path])
    options = {"vocabulary": vocabulary, "categories": ["dog"] * 5, **tiny("ngsan")}
    of_objects = kc.models.create("ngsan", **options)
    with pytest.raises(kc.InputError, match=r"Member 2 .* reads other objects"):
        kc.models.Ensemble([members[0], of_objects])
    with pytest.raises(kc.InputError, match="needs members"):
        kc.models.Ensemble([])
    with pytest.raises(kc.InputError, match=r"Member 1 .* None, is a NoneType, not a"):
        kc.serving.Predictor(None)
    with pytest.raises(kc.InputError, match=r"A saved model should be a path\. .*None"):
        kc.models.load(None)
