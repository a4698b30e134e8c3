import dataclasses
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from keras_caption.apps.scenes.scenes.captions import describe
from keras_caption.apps.scenes.scenes.rendering import SIDE, crop_features, render
from keras_caption.apps.scenes.scenes.scene import COLOURS, KINDS, sample_scene
from keras_caption.batches.examples import captions_and_words, region_features

REGION_DIM = 128


@dataclasses.dataclass(kw_only=True)
class ScenesConfig(tfds.core.BuilderConfig):
    """Numbers of scenes of each split, and the seed that they are sampled with."""

    seed: int = 0
    train: int = 4000
    val: int = 500
    test: int = 500


class Scenes(tfds.core.GeneratorBasedBuilder):
    """Generated images of objects, with captions, boxes and known objects.

    Each image, 128 x 128, shows three to eight objects of 12 kinds and 9 colours.
    Region features are a fixed projection of the pixels of an object's box: they
    contain the kind and colour of the object, but neither its position nor its size,
    which are only in `boxes`. A model can therefore learn relations only from
    geometry. Since the `objects` are known, every statement of a caption can be
    judged (`keras_caption.synthetic.scenes.judge`).

    The same seed gives the same scenes, whatever their number.
    """

    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [ScenesConfig(name="default")]
    REGION_DIM = REGION_DIM

    def _info(self):
        objects = {
            "kind": tfds.features.ClassLabel(names=KINDS),
            "colour": tfds.features.ClassLabel(names=list(COLOURS)),
        }
        return tfds.core.DatasetInfo(
            builder=self,
            description="Generated images of objects, with captions and boxes.",
            features=region_features(
                self.REGION_DIM,
                image=tfds.features.Image(shape=(SIDE, SIDE, 3)),
                objects=tfds.features.Sequence(objects),
            ),
        )

    def _split_generators(self, dl_manager):
        config = self.builder_config
        return {
            split: self._generate_examples(number, getattr(config, split))
            for number, split in enumerate(("train", "val", "test"))
        }

    def _generate_examples(self, split_number, count):
        for i in range(count):
            rng = np.random.default_rng((self.builder_config.seed, split_number, i))
            yield i, make_example(rng, split_number * 1_000_000 + i)


def make_example(rng: np.random.Generator, image_id: int = 0) -> dict[str, Any]:
    """Samples a scene, renders it and describes it.

    Args:
        rng: `numpy.random.Generator`.
        image_id: int. Defaults to 0.

    Returns:
        dict of the features of `Scenes`, in NumPy.
    """
    objects = sample_scene(rng)
    captions = describe(objects, rng)
    image = render(objects, rng)
    boxes = np.array([o.box for o in objects], "float32")
    return {
        "image_id": image_id,
        "image": image,
        "regions": crop_features(image, boxes, REGION_DIM),
        "boxes": boxes,
        **captions_and_words(captions),
        "objects": [{"kind": o.kind, "colour": o.colour} for o in objects],
    }
