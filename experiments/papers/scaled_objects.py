r"""COCO's objects with features of ten times the size, as the dataset `scaled_objects`.

    python experiments/run.py --import experiments/papers/scaled_objects.py \
        --dataset scaled_objects --data_dir coco --model aoanet_single_lstm

One-hot features begin as embeddings of size 0.1. What of an effect is gone with larger
ones is an effect of that size, not of what the model does.
"""

import keras_caption as kc

SCALE = 10.0


class ScaledObjects(kc.datasets.CocoObjects):
    """`CocoObjects` with larger features."""

    def _generate_examples(self, records):
        for image_id, example in super()._generate_examples(records):
            yield image_id, {**example, "regions": SCALE * example["regions"]}


kc.datasets.register("scaled_objects", ScaledObjects.from_folder)
