"""A captioner in float32, in bfloat16 and quantized to int8: size, captions, speed.

    python experiments/benchmarks/quantization.py saved_models/ngsan_coco.keras \
        coco_objects coco_val2017

captions the test split of a dataset by beam search. Times are of the CPU, all threads
together, for an image in batches of 50 and for one alone. Without arguments, it is
`saved_models/ngsan_scenes.keras` and `scenes`.
"""

import collections
import pathlib
import statistics
import sys
import tempfile
import time

import keras

import keras_caption as kc

BATCH = 50
ROUNDS = 9  # in which each model is timed in turn
WAYS = {
    "float32": {},
    "bfloat16": {"dtype": "bfloat16"},
    "bfloat16, not weights": {"dtype": "mixed_bfloat16"},
    "int8": {"quantized": keras.quantizers.Int8QuantizationConfig()},
    "int8, weights only": {
        "quantized": keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
    },
}


def main(path="saved_models/ngsan_scenes.keras", dataset="scenes", data_dir=None):
    examples = kc.datasets.read(kc.datasets.load(dataset, data_dir), "test")
    references = kc.datasets.references(examples)
    models = {name: loaded(path, **way) for name, way in WAYS.items()}
    specs = models["float32"].input_specs
    batches = list(kc.batches.image_batches(examples, BATCH, specs))
    captions = {name: model.caption(batches) for name, model in models.items()}
    times = times_of(models, batches[0])
    for name, model in models.items():
        equal = sum(captions["float32"][i] == x for i, x in captions[name].items())
        cider = 100 * kc.evaluation.cider(captions[name], references)
        in_batches, alone = times[name]
        print(
            f"{name:21} {size_of(model) / 1e6:5.2f} MB   {equal} of "
            f"{len(captions[name])} captions equal   CIDEr-D {cider:5.1f}   "
            f"{in_batches:5.1f} ms an image in batches, {alone:5.1f} alone"
        )


def loaded(path, dtype=None, quantized=None):
    model = kc.models.load(path)
    if dtype:
        weights = model.get_weights()
        model = type(model).from_config({**model.get_config(), "dtype": dtype})
        model.set_weights(weights)
    if quantized:
        model.quantize(config=quantized)
    return model


def times_of(models, batch):
    """Median milliseconds of CPU time for an image, in a batch and alone, by model."""
    single = {key: values[:1] for key, values in batch.items()}
    taken = collections.defaultdict(list)
    for round_ in range(ROUNDS + 1):
        for name, model in models.items():
            for inputs, images in ((batch, BATCH), (single, 1)):
                start = time.process_time()
                model.generate(inputs)
                seconds = time.process_time() - start
                if round_:  # the first compiles
                    taken[name, images].append(1000 * seconds / images)
    return {
        name: [statistics.median(taken[name, images]) for images in (BATCH, 1)]
        for name in models
    }


def size_of(model):
    """The size of the saved model, without an optimizer."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        model.without_optimizer().save(path)
        return path.stat().st_size


if __name__ == "__main__":
    main(*sys.argv[1:])
