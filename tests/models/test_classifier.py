import keras
import numpy as np
import pytest
from conftest import random_images

import keras_caption as kc
from keras_caption.inputs import Grid, Regions

ANSWERS = ["yes", "no", "two"]


@keras.saving.register_keras_serializable("tests")
class TinyClassifier(kc.models.Classifier):
    """Adds the means of valid regions and of a grid."""

    def __init__(self, answers, units=8, dtype=None, **kwargs):
        inputs = {**Regions.symbolic(6), **Grid.symbolic(2, 2, 4)}
        mask = keras.ops.cast(inputs["region_mask"], "float32")
        regions = keras.layers.Dense(units)(inputs["regions"])
        total = keras.ops.einsum("bnd,bn->bd", regions, mask)
        grid = keras.ops.mean(keras.layers.Dense(units)(inputs["grid"]), axis=(1, 2))
        logits = keras.layers.Dense(len(answers))(total + grid)
        super().__init__(keras.Model(inputs, logits), answers, dtype=dtype, **kwargs)
        self.units = units


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    grid = rng.normal(size=(3, 2, 2, 4)).astype("float32")
    return {**random_images(rng), "grid": grid}


def test_a_classifier_learns_answers_and_is_saved(batch, tmp_path):
    keras.utils.set_random_seed(0)
    judged = {"threshold": {"yes/no": 0.6}, "recall": {"dog": 0.5}}
    model = TinyClassifier(ANSWERS, units=9, calibration=[[0, 0.5], [1, 1]], **judged)
    assert [type(kind) for kind in model.kinds] == [Regions, Grid]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), loss, metrics=["accuracy"])
    targets = np.array([2, 0, 1])
    model.fit(batch, targets, epochs=25, verbose=0)
    assert model.evaluate(batch, targets, verbose=0)[1] == 1.0
    answers = model.answer(batch)
    assert answers == ["two", "yes", "no"]
    best = model.answer_n_best(batch, None, 3, batch_size=2)
    probabilities = keras.ops.softmax(model(batch))
    found = [[dict(of_one)[answer] for answer in ANSWERS] for of_one in best]
    np.testing.assert_allclose(found, probabilities, atol=1e-5)
    assert [of_one[0][0] for of_one in best] == answers

    # Padding, told by boxes without area, does not count; other keys are ignored.
    padded = {**batch, "image_id": ["a", "b", "c"]}
    mask = padded.pop("region_mask")
    padded["regions"] = np.where(mask[..., None], batch["regions"], 9)
    padded["boxes"] = np.where(mask[..., None], batch["boxes"], 0)
    assert model.answer(padded) == answers
    np.testing.assert_allclose(model(padded), model(batch), atol=1e-5)

    model.save(tmp_path / "model.keras")
    loaded = kc.models.load(tmp_path / "model.keras")
    assert type(loaded) is TinyClassifier
    assert loaded.get_config() == model.get_config()
    assert loaded.answer(batch) == answers
    assert {name: getattr(loaded, name) for name in judged} == judged
    other = TinyClassifier(ANSWERS, threshold=0.4)
    ensemble = kc.models.ClassifierEnsemble([other, loaded])
    assert ensemble.threshold == {"yes/no": 0.6, "number": 0.4, "other": 0.4}
    with pytest.raises(FileExistsError):
        model.save(tmp_path / "model.keras", overwrite=False)


def test_a_classifier_of_an_own_encoder_is_saved(batch, tmp_path):
    encoder = TinyClassifier(ANSWERS).encoder
    model = kc.models.Classifier(encoder, ANSWERS)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.answers == ANSWERS
    np.testing.assert_allclose(loaded(batch), model(batch), atol=1e-6)


def test_mistakes_are_named(batch):
    model = TinyClassifier(ANSWERS)
    with pytest.raises(kc.InputError, match="Missing from the batch: grid"):
        model.answer(random_images(np.random.default_rng(0)))
    with pytest.raises(kc.InputError, match="needs a dict of regions, boxes, grid"):
        model.answer(["photo.jpg"])
    wrong = {
        **batch,
        "grid": batch["grid"] * np.float32([[[[1]]], [[[1]]], [[[np.nan]]]]),
    }
    with pytest.raises(kc.InputError, match="Image 2 of the batch has grid that"):
        model.answer(wrong)
    half_of_a_pair = ["yes", "no", "\ud800"]  # which no file can hold
    with pytest.raises(kc.InputError, match="3 strings, one for each output"):
        kc.models.Classifier(model.encoder, ["yes", "no"])
    for answers in ([], ["yes", "yes", "no"], [1, 2, 3], half_of_a_pair):
        with pytest.raises(kc.InputError, match="`answers` should be different str"):
            kc.models.Classifier(model.encoder, answers)
        with pytest.raises(kc.InputError, match="`answers` should be different str"):
            kc.models.create("mcan", answers=answers, question_size=9)
    with pytest.raises(kc.InputError, match="`question` should be a tokenizer"):
        kc.models.create("mcan", answers=["yes"], question=["is", "it"])
    for wrong in (
        {"threshold": {"yes": 0.5}},
        {"threshold": 1.5},
        {"recall": {"dog": 2.0}},
        {"calibration": [[0.5]]},
        {"calibration": [[0.0, 0.5], [1.0, 0.4]]},
    ):
        with pytest.raises(kc.InputError, match=f"`{min(wrong)}`"):
            TinyClassifier(ANSWERS, **wrong)
    with pytest.raises(kc.InputError, match="`answers` must be a list of str"):
        kc.models.Classifier(model.encoder, None)
    decoder = kc.models.TransformerDecoder(9, 8, [])
    with pytest.raises(kc.InputError, match="reads regions and grid: a subclass"):
        kc.models.Captioner(model.encoder, decoder)
