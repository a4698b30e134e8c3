import dataclasses

import numpy as np
import tensorflow_datasets as tfds

from keras_caption.apps.scenes.scene_sentences.grammar import sample_pair


@dataclasses.dataclass(kw_only=True)
class SceneSentencesConfig(tfds.core.BuilderConfig):
    """Numbers of sentences of each split, and the seed that they are sampled with."""

    seed: int = 0
    train: int = 20_000
    val: int = 500
    test: int = 500


class SceneSentences(tfds.core.GeneratorBasedBuilder):
    """Generated sentences about scenes, in English and German.

    Every sentence has exactly one translation, see
    `keras_caption.apps.scenes.scene_sentences.grammar`, so that the share of exact
    translations is a meaningful metric. All sentences are distinct, across splits too.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [SceneSentencesConfig(name="default")]

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description="Generated sentences about scenes, in English and German.",
            features=tfds.features.Translation(languages=("en", "de")),
            supervised_keys=("en", "de"),
        )

    def _split_generators(self, dl_manager):
        config = self.builder_config
        rng, seen = np.random.default_rng(config.seed), set()
        pairs = {
            split: sample_pairs(rng, getattr(config, split), seen)
            # Validation and test sentences do not depend on the size of train.
            for split in ("test", "val", "train")
        }
        return {
            split: self._generate_examples(pairs[split])
            for split in ("train", "val", "test")
        }

    def _generate_examples(self, pairs):
        yield from enumerate(pairs)


def sample_pairs(rng, count, seen):
    """Samples pairs of sentences, none of which has been seen.

    Args:
        rng: `numpy.random.Generator`.
        count: int, number of pairs.
        seen: set of English sentences, to which those of the pairs are added.

    Returns:
        A list of dicts of `en` and `de`.
    """
    pairs = []
    while len(pairs) < count:
        english, german = sample_pair(rng)
        if english not in seen:
            seen.add(english)
            pairs.append({"en": english, "de": german})
    return pairs
