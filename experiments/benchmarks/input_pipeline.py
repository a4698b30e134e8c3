"""Bottom-up features at full size: preparing them, and reading them for training.

    python experiments/benchmarks/input_pipeline.py [IMAGES]

Writes a TSV of 2,000 images of 36 x 2048 features with five captions each, prepares
it, and reads it as training does, without keeping it in memory. What preparing takes is
then held against COCO's 123,287 images. Peak memory is of processes of their own, above
what importing takes.
"""

import base64
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

import keras_caption as kc
from experiments.benchmarks.common import REGION_DIM, REGIONS, in_a_process, peak_memory

COCO = 123_287
BATCH = 10


def write_source(folder, count):
    """A TSV and Karpathy's JSON of random features and captions."""
    rng = np.random.default_rng(0)
    pixels = base64.b64encode(np.float32([[10, 20, 300, 200]] * REGIONS)).decode()
    images = []
    with open(folder / "features.tsv", "w") as file:
        for image_id in range(count):
            values = np.maximum(rng.normal(size=(REGIONS, REGION_DIM)), 0)
            text = base64.b64encode(values.astype("float32")).decode()
            file.write(f"{image_id}\t640\t480\t{REGIONS}\t{pixels}\t{text}\n")
            words = rng.integers(0, 300, (5, 11)).astype(str)
            sentences = [{"raw": " ".join(f"w{w}" for w in row)} for row in words]
            images.append(
                {
                    "cocoid": image_id,
                    "filename": f"{image_id}.jpg",
                    "split": "train",
                    "sentences": sentences,
                }
            )
    (folder / "captions.json").write_text(json.dumps({"images": images}))


def prepare(folder):
    before = peak_memory()
    start = time.monotonic()
    sources = [kc.prepare.open_regions(folder / "features.tsv")]
    listed = kc.prepare.list_images([folder / "captions.json"])
    kc.prepare.prepare_regions(listed, sources, folder / "prepared")
    return time.monotonic() - start, peak_memory() - before


def read(folder):
    before = peak_memory()
    builder = kc.datasets.load("prepared", folder / "prepared")
    examples = kc.datasets.read(builder, "train")
    words = kc.text.Vocabulary([f"w{i}" for i in range(300)])
    options = kc.batches.BatchOptions(cache=False)
    batches = iter(kc.batches.train_batches(examples, words, BATCH, options))
    next(batches)  # fills the window that is shuffled
    start, count = time.monotonic(), len(examples) // BATCH
    for _ in range(count):
        next(batches)
    return count * BATCH / (time.monotonic() - start), peak_memory() - before


def main(count="2000"):
    count = int(count)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_source(folder, count)
        seconds, memory = in_a_process(prepare, folder)
        size = sum(f.stat().st_size for f in (folder / "prepared").iterdir())
        print(
            f"prepared {count:,} images in {seconds:.1f} s, {memory:.0f} MB of memory"
        )
        print(f"{size / count / 1e3:.0f} kB an image")
        print(
            f"all of COCO: {COCO * size / count / 1e9:.1f} GB, "
            f"{COCO * seconds / count / 60:.0f} minutes"
        )
        rate, memory = in_a_process(read, folder)
        print(f"reading them for training: {rate:.0f} images/s, {memory:.0f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
