r"""Scenes whose features know where regions are, as datasets of their own.

    python experiments/run.py --import experiments/papers/placed_scenes.py \
        --dataset placed_scenes --model gsan

What geometry is worth depends on what features know of it: those of `scenes` say what
an object is and not where. Here four of them are the corners of its box, of all regions
(`placed_scenes`), of a half (`half_placed_scenes`) or of none (`unplaced_scenes`), and
zero else. In `shuffled_scenes` features know nothing, and boxes are those of other
regions of the image.
"""

import dataclasses

import numpy as np

import keras_caption as kc
from keras_caption.apps.scenes.scenes.builder import REGION_DIM, Scenes, ScenesConfig


@dataclasses.dataclass(kw_only=True)
class PlacedConfig(ScenesConfig):
    """Share of regions whose features have corners, and whether boxes are shuffled."""

    share: float = 1.0
    shuffled: bool = False


class PlacedScenes(Scenes):
    """`Scenes`, whose features have four more."""

    BUILDER_CONFIGS = [
        PlacedConfig(name="all"),
        PlacedConfig(name="half", share=0.5),
        PlacedConfig(name="none", share=0.0),
        PlacedConfig(name="shuffled", share=0.0, shuffled=True),
    ]
    REGION_DIM = REGION_DIM + 4

    def _generate_examples(self, split_number, count):
        for i, example in super()._generate_examples(split_number, count):
            rng = np.random.default_rng((1, split_number, i))
            boxes = example["boxes"]
            known = rng.random((len(boxes), 1)) < self.builder_config.share
            corners = np.where(known, 2 * boxes - 1, 0)
            example["regions"] = np.concatenate(
                [example["regions"], corners], axis=1, dtype="float32"
            )
            if self.builder_config.shuffled:
                example["boxes"] = rng.permutation(boxes)
            yield i, example


for name, config in (
    ("placed_scenes", "all"),
    ("half_placed_scenes", "half"),
    ("unplaced_scenes", "none"),
    ("shuffled_scenes", "shuffled"),
):
    kc.datasets.register(
        name,
        lambda folder, config=config, **kwargs: PlacedScenes(config=config, **kwargs),
    )
