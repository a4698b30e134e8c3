import numpy as np
import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.apps.scenes import scenes
from keras_caption.apps.scenes.scenes.captions import describe
from keras_caption.apps.scenes.scenes.language import NUMBERS
from keras_caption.apps.scenes.scenes.scene import COLOURS, sample_scene
from keras_caption.apps.scenes.scenes.statements import (
    KIND_OF,
    PLACE_OF,
    RELATION_OF,
    SIZE_OF,
)

PHRASES = [
    *KIND_OF,
    *COLOURS,
    *SIZE_OF,
    *NUMBERS,
    *map(" ".join, RELATION_OF),
    *map(" ".join, PLACE_OF),
    *("the largest object", "only", "and", "is", "a", "the", "there", "unheard"),
]
VOCABULARY = kc.text.Vocabulary(
    sorted({word for phrase in PHRASES for word in phrase.split()} - {"unheard"})
)
LENGTH = 20


def scene_of(rng):
    """A scene as it is read back from a dataset: its boxes are float32."""
    return [
        scenes.SceneObject(o.kind, o.colour, tuple(map(float, np.float32(o.box))))
        for o in sample_scene(rng)
    ]


def corrupted(caption, rng):
    """A caption with words replaced, inserted and removed, or of other phrases."""
    words = caption.split()
    for _ in range(rng.integers(0, 4)):
        place = rng.integers(0, len(words) + 1)
        words[place : place + rng.integers(0, 2)] = rng.choice(PHRASES).split()
    return words


def captions_of(objects, rng):
    """Tokens of five captions, five of another scene, and ten corrupted ones."""
    texts = [*describe(objects, rng), *describe(scene_of(rng), rng)]
    rows = [text.split() for text in texts]
    rows += [corrupted(text, rng) for text in texts[:5]]
    rows += [
        " ".join(rng.choice(PHRASES, rng.integers(0, 9))).split() for _ in texts[:5]
    ]
    tokens = [VOCABULARY.to_ids(" ".join(row))[:LENGTH] for row in rows]
    ended = [
        [*row, kc.text.EOS, *rng.integers(0, 50, LENGTH)][:LENGTH] for row in tokens
    ]
    return np.array(ended, "int32")


@pytest.fixture(scope="module")
def judged():
    """150 scenes with 20 captions each, and their statements by the Python checker."""
    rng = np.random.default_rng(1)
    images = [scene_of(rng) for _ in range(150)]
    captions = np.stack([captions_of(objects, rng) for objects in images])
    facts = [scenes.scene_facts(objects, ["a red star"]) for objects in images]
    most = max(map(len, images))

    def padded(values, axes):
        missing = most - len(values)
        return np.pad(values, [(0, missing * (i < axes)) for i in range(values.ndim)])

    batch = {
        "properties": np.stack([padded(f["properties"], 1) for f in facts]),
        "relations": np.stack([padded(f["relations"], 2) for f in facts]),
    }
    statements = [
        scenes.judge(VOCABULARY.decode(row), objects)
        for objects, rows in zip(images, captions, strict=True)
        for row in rows
    ]
    return captions.reshape(-1, LENGTH), batch, statements


@pytest.mark.parametrize("jit", [False, True])
def test_counts_what_the_python_checker_finds(judged, jit):
    captions, batch, statements = judged
    truth = scenes.StatementTruth(VOCABULARY)
    counts = tf.function(truth.count, jit_compile=jit)(captions, **batch)
    for category in scenes.CATEGORIES:
        outcomes = [[t for c, t in found if c == category] for found in statements]
        true, stated = (np.array(x) for x in counts[category])
        np.testing.assert_array_equal(stated, [len(x) for x in outcomes])
        np.testing.assert_array_equal(true, [sum(x) for x in outcomes])
        assert 50 < sum(true) < sum(stated) - 50, category


def test_reward_is_the_share_of_true_statements_of_no_fewer_than_references_make(
    judged,
):
    captions, batch, statements = judged
    truth = scenes.StatementTruth(VOCABULARY)
    two = {name: values[:2] for name, values in batch.items()}
    usual = np.array([0.0, 5.5], "float32")
    rewards = np.array(truth(captions[:40], None, **two, statements=usual))
    found = [[true for _, true in outcomes] for outcomes in statements[:40]]
    assert any(0 < sum(true) < 5 for true in found[20:])
    expected = [np.mean(true or [0]) for true in found[:20]]
    expected += [sum(true) / max(len(true), 5.5) for true in found[20:]]
    np.testing.assert_allclose(rewards, expected, atol=1e-6)
