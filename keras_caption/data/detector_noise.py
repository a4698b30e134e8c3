import dataclasses
from typing import Any

import tensorflow as tf

from keras_caption.arguments import Share, check

JITTER = 0.1  # of an object found twice: how far its second box is off, of its sides


@dataclasses.dataclass(frozen=True, kw_only=True)
class DetectorNoise:
    """Changes annotated objects to what a detector might have found.

    Small objects are missed most: one whose box has a share a of the image's area
    with probability `missing * (1 - sqrt(a)) ** 2`. Those that remain may be found
    twice, and any found one may be taken for another category. An image without
    objects then has one region of zeros, whose box is the whole image.

    Attributes:
        missing: float in [0, 1], share of the smallest objects that are missed.
        doubled: float in [0, 1], share of the objects that are found twice.
        mislabelled: float in [0, 1], share of those found that have a random category.

    Raises:
        InputError: If a share is out of range.
    """

    missing: float = 0.0
    doubled: float = 0.0
    mislabelled: float = 0.0

    def __post_init__(self):
        for name, value in dataclasses.asdict(self).items():
            check(Share, **{name: value})

    def __call__(self, example: dict[str, Any], seed: Any) -> dict[str, Any]:
        """Changes the objects of one example, in the graph of a tf.data pipeline.

        Args:
            example: dict of `regions`, float `(N, 80)`, one-hot, `boxes`, float
                `(N, 4)`, and others, which are kept.
            seed: int64 `(2,)`; the same seed makes the same changes.

        Returns:
            dict, as `example`, with another N.
        """
        regions, boxes = example["regions"], example["boxes"]
        seeds = tf.unstack(tf.random.experimental.stateless_split(seed, 5))
        shape = tf.shape(regions)[:1]
        sides = boxes[:, 2:] - boxes[:, :2]
        small = 1 - tf.sqrt(tf.maximum(sides[:, 0] * sides[:, 1], 0.0))
        found = _chances(shape, seeds[0]) >= self.missing * small**2
        twice = found & (_chances(shape, seeds[1]) < self.doubled)
        again = tf.where(twice)[:, 0]
        offsets = tf.tile(tf.gather(sides, again), (1, 2))
        offsets *= JITTER * (2 * _chances(tf.shape(offsets), seeds[2]) - 1)
        indices = tf.concat([tf.where(found)[:, 0], again], axis=0)
        second = tf.clip_by_value(tf.gather(boxes, again) + offsets, 0.0, 1.0)
        boxes = tf.concat([tf.boolean_mask(boxes, found), second], axis=0)
        regions = self._mislabel(tf.gather(regions, indices), seeds[3:])
        nothing = tf.equal(tf.size(indices), 0)
        whole = tf.constant([[0.0, 0.0, 1.0, 1.0]])
        regions = tf.cond(
            nothing, lambda: tf.zeros((1, regions.shape[1])), lambda: regions
        )
        boxes = tf.cond(nothing, lambda: whole, lambda: boxes)
        changed = {"regions": regions, "boxes": boxes}
        if "region_mask" in example:  # where all are valid
            changed["region_mask"] = tf.ones(tf.shape(boxes)[:1], tf.bool)
        return {**example, **changed}

    def _mislabel(self, regions, seeds):
        shape, categories = tf.shape(regions)[:1], regions.shape[1]
        wrong = _chances(shape, seeds[0]) < self.mislabelled
        others = tf.random.stateless_uniform(shape, seeds[1], 0, categories, tf.int32)
        return tf.where(wrong[:, None], tf.one_hot(others, categories), regions)


def _chances(shape, seed):
    return tf.random.stateless_uniform(shape, seed)
