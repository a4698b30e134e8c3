import numpy as np
import pytest
import tensorflow as tf
from conftest import random_images, tiny
from keras import ops

import keras_caption as kc
from keras_caption.text import EOS


def length(captions, references):
    return ops.cast(ops.sum(captions > EOS, axis=-1), "float32")


def nearness(captions, references, regions, boxes):
    """A reward that reads more of a batch: of the first box, and of both shapes."""
    return ops.repeat(boxes[:, 0, 0] + 0.0 * regions[:, 0, 0], captions.shape[0] // 2)


nearness.reads = ("regions", "boxes")
CAPTIONS = np.int32([[4, 5, EOS, 0], [4, EOS, 0, 0], [5, 6, 7, 8], [EOS, 0, 0, 0]])


def test_rewards_are_weighed_and_added(rng):
    batch = {name: random_images(rng, 2)[name] for name in nearness.reads}
    inner = kc.rewards.WeightedSum([length, nearness], weights=[2.0, -3.0])
    reward = kc.rewards.WeightedSum([inner, length])
    assert reward.reads == ("regions", "boxes")
    near = batch["boxes"][[0, 0, 1, 1], 0, 0]
    found = tf.function(reward)(CAPTIONS, None, **batch)
    np.testing.assert_allclose(found, [6, 3, 12, 0] - 3 * near, rtol=1e-6)
    for rewards, weights in (([], None), ([length], [1.0, 2.0])):
        with pytest.raises(kc.InputError, match="one weight for each"):
            kc.rewards.WeightedSum(rewards, weights)
    for weight in (1e-50, -1e39, float("nan"), "1"):
        with pytest.raises(kc.InputError, match="`weights`: Input should be a"):
            kc.rewards.WeightedSum([length], [weight])


def test_self_critical_training_gives_a_reward_what_it_reads(rng):
    model = kc.models.create("san", vocabulary_size=9, **tiny("san", num_layers=1))
    references = np.tile(CAPTIONS, (2, 1, 1))
    batch = {**random_images(rng, 2), "references": references}
    found = []
    for weight in (0.0, 10.0):
        reward = kc.rewards.WeightedSum([length, nearness], [1.0, weight])
        trainer = kc.training.SelfCritical(model, reward, samples=2, max_length=4)
        tokens, rewards, _ = trainer.explore(
            model.encode(model.read(batch)),
            **{n: batch[n] for n in ("references", *reward.reads)},
        )
        found.append(np.array(rewards))
        expected = np.array(length(tokens, None))
        expected += weight * np.repeat(batch["boxes"][:, 0, 0], 2)
        np.testing.assert_allclose(rewards, expected, rtol=1e-5)
    del batch["boxes"]
    with pytest.raises(kc.InputError, match="that hold references, regions, boxes"):
        trainer.train_step({name: tf.constant(x) for name, x in batch.items()})
