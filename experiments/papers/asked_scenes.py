r"""Scenes of which captions ask, as datasets: some of what they ask for is not there.

    python experiments/run.py --import experiments/papers/asked_scenes.py \
        --dataset asked_scenes_60 --model aoanet

A caption names three kinds of objects, at random, and says the colour of each: "star
red ring none tree blue". Of `asked_scenes_0` all kinds are in the image, once each; of
`asked_scenes_30` and `asked_scenes_60` that share, in percent, is not, and "none" is
said. What attention finds is then worth nothing, which is what gates are for.
"""

import dataclasses

import numpy as np

import keras_caption as kc
from keras_caption.apps.scenes.scenes.builder import Scenes, ScenesConfig
from keras_caption.apps.scenes.scenes.scene import KINDS
from keras_caption.batches.examples import captions_and_words

CAPTIONS, ASKED = 5, 3  # captions of an image, and kinds in each


@dataclasses.dataclass(kw_only=True)
class AskedConfig(ScenesConfig):
    """Share of the kinds asked for that are not in the image, in percent."""

    absent: int = 0


class AskedScenes(Scenes):
    """`Scenes` with other captions."""

    BUILDER_CONFIGS = [AskedConfig(name=f"absent_{x}", absent=x) for x in (0, 30, 60)]

    def _generate_examples(self, split_number, count):
        for i, example in super()._generate_examples(split_number, count):
            rng = np.random.default_rng((2, split_number, i))
            captions = [self._ask(example["objects"], rng) for _ in range(CAPTIONS)]
            yield i, {**example, **captions_and_words(captions)}

    def _ask(self, objects, rng):
        kinds = [x["kind"] for x in objects]
        single = [x for x in objects if kinds.count(x["kind"]) == 1]
        absent = [kind for kind in KINDS if kind not in kinds]
        there = [single[i] for i in rng.permutation(len(single))]
        absent = [str(kind) for kind in rng.permutation(absent)]
        words = []
        for number in range(ASKED):
            if not there or rng.random() < self.builder_config.absent / 100:
                words += [absent[number], "none"]
            else:  # others, as long as there are
                chosen = there[number % len(there)]
                words += [chosen["kind"], chosen["colour"]]
        return " ".join(words)


for config in AskedScenes.BUILDER_CONFIGS:
    kc.datasets.register(
        f"asked_scenes_{config.absent}",
        lambda folder, config=config, **kwargs: AskedScenes(config=config, **kwargs),
    )
