r"""Scenes as grids of 4 x 4, 9 x 9 and 14 x 14 cells, as datasets; and a temperature.

    python experiments/run.py --import experiments/papers/grid_scenes.py \
        --dataset grid_scenes_9 --model spatial --config.model.temperature=learned

Cells have the features that `scenes` has of boxes: a fixed projection of their pixels.
Spatial self-attention divides scores by `sqrt(length + d)`, length the number of cells.
What a temperature that is learned, one number for each layer, brings as well is not an
effect of the length: `temperature="learned"`, which begins at `sqrt(d)`.
"""

import dataclasses
import math

import keras
import numpy as np
import tensorflow_datasets as tfds
from keras import ops

import keras_caption as kc
from keras_caption.apps.scenes.scenes.builder import REGION_DIM, Scenes, ScenesConfig
from keras_caption.apps.scenes.scenes.rendering import crop_features
from keras_caption.batches.examples import caption_features
from keras_caption.models.attention import TEMPERATURES


@dataclasses.dataclass(kw_only=True)
class GridConfig(ScenesConfig):
    """Cells along a side of the grid."""

    cells: int = 9


class GridScenes(Scenes):
    """`Scenes` as grids."""

    BUILDER_CONFIGS = [GridConfig(name=f"cells_{x}", cells=x) for x in (4, 9, 14)]

    def _info(self):
        cells = self.builder_config.cells
        grid = tfds.features.Tensor(
            shape=(cells, cells, REGION_DIM), dtype=np.float16, encoding="bytes"
        )
        return tfds.core.DatasetInfo(
            builder=self, features=caption_features({"grid": grid})
        )

    def _generate_examples(self, split_number, count):
        cells = self.builder_config.cells
        y, x = np.mgrid[:cells, :cells].reshape(2, -1) / cells
        boxes = np.stack([x, y, x + 1 / cells, y + 1 / cells], axis=1)
        for i, example in super()._generate_examples(split_number, count):
            features = crop_features(example["image"], boxes, REGION_DIM)
            grid = features.reshape(cells, cells, REGION_DIM).astype("float16")
            kept = {name: example[name] for name in ("image_id", "captions", "words")}
            yield i, {**kept, "grid": grid}


@keras.saving.register_keras_serializable("keras_caption_experiments")
class LearnedTemperature(keras.layers.Layer):
    """A divisor of scores that is learned: `exp(w) sqrt(d)`, w a number, 0 at first."""

    def build(self, keys_shape):
        self.scale = self.add_weight((), initializer="zeros", name="scale")

    def call(self, keys):
        return ops.exp(ops.cast(self.scale, "float32")) * math.sqrt(keys.shape[-1])


TEMPERATURES["learned"] = lambda options, num_heads, dtype: LearnedTemperature(
    dtype=dtype
)
for config in GridScenes.BUILDER_CONFIGS:
    kc.datasets.register(
        f"grid_scenes_{config.cells}",
        lambda folder, config=config, **kwargs: GridScenes(config=config, **kwargs),
    )
