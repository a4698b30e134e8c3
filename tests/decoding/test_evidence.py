import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from keras import ops

import keras_caption as kc
from keras_caption.decoding import Decoding, ObjectEvidence
from keras_caption.features import CATEGORIES
from keras_caption.features.object_evidence import DONE, IMPLIED, KINDS, RELATIONS
from keras_caption.features.object_words import NOUN, mentions, said_several
from keras_caption.text import BOS, EOS, PAD, UNK

NAMES = {word for text in (*NOUN, *IMPLIED, *DONE) for word in text.split()}
UNSUPPORTED = ("green", "window", "behind", "woman", "running")
WORDS = sorted({*KINDS, *RELATIONS, *NAMES, *UNSUPPORTED, "room", "covered", "top"})


@pytest.fixture(scope="module")
def words():
    return kc.text.Vocabulary(WORDS)


@pytest.fixture(scope="module")
def evidence(words):
    return ObjectEvidence(words)


@pytest.fixture(scope="module")
def model(words):
    """A captioner of objects, with random weights."""
    sizes = tiny("ngsan", num_layers=1, region_dim=len(CATEGORIES))
    return kc.models.create(
        "ngsan", vocabulary=words, categories=[*CATEGORIES], **sizes
    )


def images_of(*images):
    """Inputs of images that are lists of a category and a box."""
    longest = max(len(objects) for objects in images)
    inputs = {
        "regions": np.zeros((len(images), longest, len(CATEGORIES)), "float32"),
        "boxes": np.zeros((len(images), longest, 4), "float32"),
        "region_mask": np.zeros((len(images), longest), "bool"),
    }
    for row, objects in enumerate(images):
        for i, (category, box) in enumerate(objects):
            inputs["regions"][row, i, CATEGORIES.index(category)] = 1.0
            inputs["boxes"][row, i] = box
            inputs["region_mask"][row, i] = True
    return inputs


TALL = (0.4, 0.1, 0.6, 0.9)
LEFT, RIGHT = (0.0, 0.3, 0.3, 0.9), (0.32, 0.3, 0.6, 0.9)
WIDE = (0.1, 0.5, 0.9, 1.0)  # what things lie on
ON_IT = (0.4, 0.4, 0.5, 0.6)
CAT = [("cat", TALL)]
TWO = [("giraffe", LEFT), ("giraffe", RIGHT)]
LAID = [("dining table", WIDE), ("cup", ON_IT)]
RIDING = [("person", TALL), ("surfboard", (0.3, 0.8, 0.7, 0.95))]
PARTS = [("cat", WIDE), ("cat", (0.2, 0.6, 0.5, 0.9))]  # one, found twice
FAR = [("person", (0.0, 0.0, 0.4, 0.4)), ("cell phone", (0.9, 0.9, 0.95, 0.95))]
GLASSES = [("wine glass", LEFT), ("wine glass", RIGHT)]
APART = [("person", (0.0, 0.1, 0.1, 0.4)), ("chair", (0.8, 0.7, 0.9, 0.9))]


@pytest.mark.parametrize(
    ("objects", "prefix", "admissible", "excluded"),
    [
        (CAT, "", "a", "two people the window"),
        (CAT, "a", "cat", "dog cats group street green"),
        (CAT, "a cat", "", "sitting standing on with and is next"),
        (TWO, "", "two a giraffes", "three several people"),
        (TWO, "a", "giraffe", "group giraffes"),
        (TWO, "two giraffes standing next to", "each", "a"),
        ([TWO[0]], "a giraffe", "standing is", "next"),
        (TWO, "a giraffe standing", "", "next"),  # what is said of one
        (LAID, "a cup", "on sitting with", "in at under"),
        (LAID, "a cup on a", "table dining", "cup"),
        (LAID, "a table", "with and", "on sitting"),
        (RIDING, "a person", "riding on in surfing", "holding playing"),
        (RIDING, "a person riding a", "surfboard wave", "person street"),
        ([RIDING[1]], "a", "surfboard", "wave surfer person"),
        (APART, "a person", "and", "on with sitting holding next"),
        ([("toilet", TALL)], "a", "toilet bathroom", "kitchen"),
        ([("hot dog", TALL)], "a", "hot", "dog"),
        ([("hot dog", TALL)], "a hot", "dog", "and cat"),
        ([("elephant", TALL)], "", "an", "a"),
        ([("sheep", x) for x in (TALL, LEFT, RIGHT)], "a herd of", "sheep", "cow"),
        (PARTS, "", "a", "two cats"),
        (PARTS, "a cat", "", "next with and"),
        ([("cat", TALL)] * 2, "", "a", "two cats"),
        (FAR, "a person", "and", "holding with"),
        (GLASSES, "a wine", "glass", "glasses"),
        (GLASSES, "two wine", "glasses", "glass"),
    ],
)
def test_words_need_evidence(evidence, words, objects, prefix, admissible, excluded):
    inputs = images_of(objects)
    tokens = np.zeros((1, 12), "int32")
    ids = words.to_ids(prefix)
    tokens[0, : len(ids)] = ids
    read = evidence.read(**inputs)
    allowed = np.array(evidence.admissible(tokens, len(ids), read))[0]
    candidates = {words.words[i] for i in np.flatnonzero(allowed)}
    assert {*admissible.split()} <= candidates
    assert not {*excluded.split()} & candidates
    nouns = {text.split()[-1] for text in NOUN}
    ends = bool(ids) and prefix.split()[-1] in nouns | {"standing"}
    assert allowed[EOS] == ends
    assert not allowed[[PAD, BOS, UNK]].any()


def test_random_captions_end_and_name_what_is_there(evidence, words, rng):
    images = [
        [
            (CATEGORIES[i], np.sort(rng.random((2, 2)), axis=0).ravel())
            for i in rng.choice(len(CATEGORIES), size=4)[rng.integers(4, size=6)]
        ]
        for _ in range(200)
    ]
    found = evidence.read(**images_of(*images))
    step = tf.function(evidence.admissible)
    tokens, unfinished = (
        np.zeros((len(images), 16), "int32"),
        np.ones(len(images), bool),
    )
    for i in range(tokens.shape[1]):
        allowed = np.array(step(tokens, tf.constant(i), found))
        for row in np.flatnonzero(unfinished):
            choices = np.flatnonzero(allowed[row])
            assert len(choices), words.decode(tokens[row, :i])
            tokens[row, i] = rng.choice(choices)
            unfinished[row] = tokens[row, i] != EOS
    assert unfinished.mean() < 0.2
    for objects, row in zip(images, tokens, strict=True):
        caption, there = words.decode(row), [category for category, _ in objects]
        # Who plays baseball names no ball.
        named = [x for noun, x in mentions(caption) if noun != "baseball"]
        assert {*named} <= {*there}, caption
        assert all(there.count(x) > 1 for x in said_several(caption)), caption


def test_every_search_heeds_it_and_users_go_before_it(model, rng):
    inputs = images_of(CAT, TWO, LAID, RIDING)
    expected = model.generate(inputs, evidence=True, max_length=8)
    assert expected[0] == "a cat"
    for text, objects in zip(expected, (CAT, TWO, LAID, RIDING), strict=True):
        assert {x for _, x in mentions(text)} <= {x for x, _ in objects}
    for options in ({"beam_size": 1}, {"temperature": 2.0, "seed": 1}):
        texts = model.generate(inputs, evidence=True, max_length=8, **options)
        assert texts[0] == "a cat"
    model.jit_compile = True
    assert model.generate(inputs, evidence=True, max_length=8) == expected
    model.jit_compile = False
    # What a user wants said, or not, leaves a text all the same.
    for options, word in (
        ({"required": ["green window"]}, "green window"),
        ({"forbidden": ["cat"], "min_length": 6, "prefix": "green"}, "green"),
    ):
        [text] = model.generate(images_of(CAT), evidence=True, max_length=8, **options)
        assert word in text
    # Where nothing is detected, nothing is known of words.
    nothing = images_of([("cat", TALL)])
    nothing["regions"][:] = 0.0
    [text] = model.generate(nothing, evidence=True, max_length=8)
    assert [text] == model.generate(nothing, max_length=8)


def test_self_critical_training_samples_only_what_it_admits(model, rng, monkeypatch):
    """The gradient is that of log p among admissible tokens, in float64."""
    monkeypatch.setattr(model, "decoding", Decoding(evidence=True))
    inputs = images_of(CAT, TWO, LAID, RIDING)
    references = np.full((4, 1, 6), EOS, "int32")
    reward = kc.rewards.CiderD.from_references(references)
    samples, length = 3, 6
    trainer = kc.training.SelfCritical(
        model, reward, samples=samples, temperature=2.0, max_length=length
    )
    seen, loss_of = {}, trainer.loss_of

    def seeing(memory, tokens, advantages, evidence):
        seen.update(tokens=tokens, evidence=evidence)
        loss, logs = loss_of(memory, tokens, ops.ones_like(advantages), evidence)
        return seen.setdefault("loss", loss), logs

    monkeypatch.setattr(trainer, "loss_of", seeing)
    trainer.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    trainer.train_on_batch({**inputs, "references": references})
    tokens = np.array(seen["tokens"])
    logits = model.logits(
        np.pad(tokens[:, :-1], [(0, 0), (1, 0)], constant_values=BOS),
        model.encode(model.read(inputs)),
    )
    scores = np.array(logits, "float64") / 2.0
    of_rows = {n: np.repeat(x, samples, axis=0) for n, x in seen["evidence"].items()}
    log_p = []
    for index in range(length):
        begun = np.where(np.arange(length) < index, tokens, PAD)
        admissible = np.array(model.evidence.admissible(begun, index, of_rows))
        admissible[:, [PAD, BOS, UNK]] = False
        for row, token in enumerate(tokens[:, index]):
            if token != PAD:
                assert admissible[row, token]
                values = np.exp(scores[row, index])
                log_p.append(np.log(values[token] / values[admissible[row]].sum()))
    np.testing.assert_allclose(float(seen["loss"]), -np.mean(log_p), rtol=1e-5)


def test_it_is_saved_and_exported(model, captioner, tmp_path, rng):
    inputs = images_of(CAT, TWO, LAID, RIDING)
    expected = model.generate(inputs, evidence=True, max_length=8)
    before, model.decoding = model.decoding, Decoding(evidence=True, max_length=8)
    model.save(tmp_path / "model.keras")
    kc.serving.export(model, tmp_path / "export" / "1")
    model.decoding = before
    loaded = kc.models.load(tmp_path / "model.keras")
    assert loaded.generate(inputs) == expected
    assert kc.models.Ensemble([loaded]).generate(inputs) == expected
    served = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures["features"]
    answer = served(**{n: tf.constant(inputs[n]) for n in ("regions", "boxes")})
    assert [x.decode() for x in answer["captions"].numpy()] == expected
    with pytest.raises(
        kc.InputError, match="'ngsan' does not caption detected objects"
    ):
        captioner.generate(random_images(rng), evidence=True)
