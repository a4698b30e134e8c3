from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest import tiny
from keras_caption.objects import CATEGORIES

import keras_caption as kc
from keras_caption.apps.objects.object_words import CATEGORY, NOUN, PATTERN, PLURALS
from keras_caption.text import BOS, EOS, PAD

VOCABULARY = kc.text.Vocabulary.build(
    ["a hot dog hot dogs on two benches dining table men man bat baseball teddy bear"],
    min_count=1,
)


def expected_reward(caption, references, regions):
    """The reward by its definition, of texts, in float64."""

    def named(text):
        """Objects by category, of different nouns, and by all mentions."""
        most = {}
        found = [(NOUN[x], 1 + (x in PLURALS)) for x in PATTERN.findall(text)]
        for noun, number in found:
            most[noun] = max(most.get(noun, 0), number)
        objects = Counter()
        for noun, number in most.items():
            objects[CATEGORY[noun]] += number
        return objects, sum(number for _, number in found)

    there = Counter()
    for region in regions:
        there[CATEGORIES[region.argmax()]] += int(region.any())
    people = [named(text)[0] for text in references]
    for found in people:
        there |= found
    objects, stated = named(caption)
    true = sum(min(count, there[name]) for name, count in objects.items())
    mean = sum(x.total() for x in people) / max(len(people), 1)
    return (2 * true - stated) / max(stated, mean, 1.0)


def random_batch(rng, images, per_image, length):
    def texts(*shape):
        tokens = rng.integers(4, len(VOCABULARY), (*shape, length))
        ends = rng.integers(0, length + 1, (*shape, 1))
        places = np.arange(length)
        tokens = np.where(places < ends, tokens, np.where(places == ends, EOS, PAD))
        return tokens.astype("int32")

    references = texts(images, 3)
    for i in range(images):
        references[i, 1 + i % 3 :] = PAD  # one to three references
    named = [0, 13, 16, 32, 34, 52, 60, 77]
    regions = np.eye(80, dtype="float32")[rng.choice(named, (images, 3))]
    regions[0] = 0.0  # nothing is there
    for i in range(images):
        regions[i, 1 + i % 3 :] = 0.0
    return texts(images * per_image), references, regions


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(("images", "length"), [(40, 7), (1, 1)])
def test_equals_its_definition(rng, images, length, jit_compile):
    captions, references, regions = random_batch(rng, images, 5, length)
    reward = tf.function(kc.rewards.ObjectTruth(VOCABULARY), jit_compile=jit_compile)
    found = np.array(reward(captions, references, regions=regions))
    expected = [
        expected_reward(
            VOCABULARY.decode(caption),
            [VOCABULARY.decode(r) for r in references[i // 5] if r.any()],
            regions[i // 5],
        )
        for i, caption in enumerate(captions)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    if images > 1:
        assert min(expected) < 0 < max(expected)


def test_what_costs_and_what_earns():
    def reward(caption, reference="a dog on a table", dogs=1):
        tokens = [np.int32([VOCABULARY.encode(x)[1:]]) for x in (caption, reference)]
        dog = np.eye(80, dtype="float32")[[16] * dogs]
        layer = kc.rewards.ObjectTruth(VOCABULARY)
        return float(layer(tokens[0], tokens[1][None], regions=dog[None])[0])

    assert reward("a dog on a dining table") == 1
    assert reward("a dog") == 0.5  # little
    assert reward("a dog on benches") == pytest.approx(-1 / 3)  # not there
    assert reward("a dog on a dog") == 0  # there once
    assert reward("a dog on a dog", dogs=2) == 0  # said again
    assert reward("dogs") == 0  # one is there
    assert reward("dogs", dogs=2) == 1
    assert reward("men", "a man") == 0
    assert reward("a") == 0
    assert reward("two hot dogs") == -1  # no dogs


def test_self_critical_training_follows_it(rng):
    """What earns most is one noun: it becomes more probable."""
    keras.utils.set_random_seed(0)
    dog = VOCABULARY.words.index("dog")
    sizes = tiny("san", num_layers=1) | {"region_dim": 80}
    model = kc.models.create("san", vocabulary=VOCABULARY, **sizes)
    regions = np.eye(80, dtype="float32")[np.full((4, 2), 16)]
    references = np.int32([[[dog, EOS]]] * 4)
    batch = {"regions": tf.constant(regions), "references": tf.constant(references)}
    reward = kc.rewards.WeightedSum([kc.rewards.ObjectTruth(VOCABULARY)], [3.0])
    trainer = kc.training.SelfCritical(model, reward, samples=20, max_length=2)
    trainer.compile(keras.optimizers.Adam(1e-2))

    def probability():
        logits = model.logits(np.int32([[BOS]] * 4), model.encode(model.read(batch)))
        return float(keras.ops.softmax(logits)[0, 0, dog])

    before = probability()
    for _ in range(3):
        trainer.train_step(batch)
    assert probability() > 1.1 * before
