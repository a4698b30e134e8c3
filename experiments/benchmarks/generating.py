"""The memory of `generate` over any number of photos of mixed sizes.

    python experiments/benchmarks/generating.py [PHOTOS]

captions 10,000 photos of 100 to 500 pixels a side, which an iterator makes one after
another, by MobileNet at 96 pixels and a small NG-SAN, both with random weights. Memory
is that of the process, resident, after a tenth of the photos and after all; what the
photos would take as a list stands beside it.
"""

import sys

import keras
import numpy as np

import keras_caption as kc
from experiments.benchmarks.common import resident_memory

SIDES = (100, 500)
SIZES = {"num_layers": 1, "model_dim": 64, "num_heads": 4, "feedforward_dim": 256}


class Photos:
    """Iterates over photos, and notes what memory the process has in between."""

    def __init__(self, count):
        self.count = count
        self.megabytes = 0
        self.resident = {}

    def __iter__(self):
        rng = np.random.default_rng(0)
        for number in range(self.count):
            if number == self.count // 10:
                self.resident[number] = resident_memory()
            photo = rng.integers(256, size=(*rng.integers(*SIDES, 2), 3), dtype="uint8")
            self.megabytes += photo.nbytes / 1e6
            yield photo


def main(count=10_000):
    keras.utils.set_random_seed(0)
    extractor = kc.features.Extractor(image_size=96, arguments={"alpha": 0.25})
    words = kc.text.Vocabulary([f"word{i}" for i in range(1000)])
    region_dim = extractor.grid_shape[-1]
    model = kc.models.create("ngsan", vocabulary=words, region_dim=region_dim, **SIZES)
    model.extractor = extractor
    photos = Photos(int(count))
    captions = model.generate(photos, progress=True)
    photos.resident[len(captions)] = resident_memory()
    for number, megabytes in photos.resident.items():
        print(f"after {number:6,} photos: {megabytes:5,.0f} MB resident")
    print(f"all photos as a list: {photos.megabytes:,.0f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
