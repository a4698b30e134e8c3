r"""Scenes with 36 distinct regions an image, as the dataset `proposals`.

    python experiments/run.py --import experiments/papers/proposals.py \
        --dataset proposals --model nsan

An image of NG-SAN's has 36 regions of a detector, no two of them alike, where one of
`scenes` has three to eight. Here each object is proposed several times, by its box with
corners moved at random, until there are 36; features are of the pixels in these boxes.
The test split has 5,000 images, so that small effects are seen.
"""

import numpy as np

import keras_caption as kc
from keras_caption.apps.scenes.scenes.builder import REGION_DIM, Scenes, ScenesConfig
from keras_caption.apps.scenes.scenes.rendering import crop_features

REGIONS = 36
MOVED = 0.3  # greatest move of a corner, of the side of a box


class Proposals(Scenes):
    """`Scenes` with 36 regions an image."""

    BUILDER_CONFIGS = [ScenesConfig(name="proposals", test=5000)]

    def _generate_examples(self, split_number, count):
        for i, example in super()._generate_examples(split_number, count):
            rng = np.random.default_rng((2, split_number, i))
            boxes = np.resize(example["boxes"], (REGIONS, 4))  # in turn
            sides = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
            moves = rng.uniform(-MOVED, MOVED, boxes.shape) * sides
            example["boxes"] = np.clip(boxes + moves, 0, 1).astype("float32")
            example["regions"] = crop_features(
                example["image"], example["boxes"], REGION_DIM
            )
            yield i, example


kc.datasets.register("proposals", lambda folder, **kwargs: Proposals(**kwargs))
