import numpy as np
import pytest
import tensorflow as tf

import keras_caption as kc
from keras_caption.data import DetectorNoise


def objects(sides, category=3):
    """An example of square objects of these sides."""
    boxes = np.array([[0.2, 0.2, 0.2 + side, 0.2 + side] for side in sides], "float32")
    regions = np.eye(80, dtype="float32")[[category] * len(sides)]
    return {"regions": tf.constant(regions), "boxes": tf.constant(boxes)}


def test_shares_of_objects_are_missed_doubled_and_mislabelled():
    example = objects([0.5] * 4000)
    noise = DetectorNoise(missing=0.8, doubled=0.25, mislabelled=0.1)
    changed = noise(example, tf.constant([0, 1], tf.int64))
    boxes, regions = (np.array(changed[name]) for name in ("boxes", "regions"))
    first = (boxes == np.array(example["boxes"][0])).all(axis=1)
    assert first.mean() == pytest.approx(1 / 1.25, abs=0.02)
    assert first.sum() / 4000 == pytest.approx(1 - 0.8 * 0.25, abs=0.02)
    assert np.abs(boxes - np.array(example["boxes"][0])).max() <= 0.05 + 1e-6
    assert (regions.sum(axis=1) == 1).all()
    assert regions[:, 3].mean() == pytest.approx(0.9, abs=0.02)
    again = noise(example, tf.constant([0, 1], tf.int64))
    np.testing.assert_array_equal(again["boxes"], boxes)
    other = noise(example, tf.constant([0, 2], tf.int64))
    assert len(other["boxes"]) != len(boxes)


def test_images_may_have_nothing_left():
    changed = DetectorNoise(missing=1.0)(objects([0.0]), tf.constant([0, 1], tf.int64))
    np.testing.assert_array_equal(changed["boxes"], [[0, 0, 1, 1]])
    assert not np.array(changed["regions"]).any()
    unchanged = DetectorNoise()(objects([0.3, 0.0]), tf.constant([0, 1], tf.int64))
    np.testing.assert_array_equal(unchanged["boxes"], objects([0.3, 0.0])["boxes"])
    with pytest.raises(kc.InputError, match="missing"):
        DetectorNoise(missing=1.5)


def test_epochs_differ_and_resume():
    words = tf.constant([["a dog"]] * 6)
    example = objects([0.1] * 5)
    examples = tf.data.Dataset.from_tensors(example).repeat(6)
    examples = tf.data.Dataset.zip(
        examples, tf.data.Dataset.from_tensor_slices(words)
    ).map(lambda x, y: {**x, "words": y})
    options = kc.data.BatchOptions(noise=DetectorNoise(missing=0.9, doubled=0.5))

    def batches(first_epoch, count):
        made = kc.data.train_batches(
            examples,
            kc.text.Vocabulary(["a", "dog"]),
            6,
            options,
            first_epoch=first_epoch,
        )
        made = list(made.take(count))
        for x, *_ in made:
            valid = np.array(x["region_mask"])
            assert (valid == np.array(x["boxes"]).any(axis=-1)).all()
        return [np.array(x["boxes"]) for x, *_ in made]

    first, second = batches(0, 2)
    [resumed] = batches(1, 1)
    np.testing.assert_array_equal(second, resumed)
    assert first.shape != second.shape or (first != second).any()
