"""A training step and a beam search on the backend of Keras that runs.

    KERAS_BACKEND=jax python experiments/benchmarks/backends.py [MODEL]

At the papers' size, see training_step.py: cross-entropy of 10 images x 5 captions of 17
tokens, Adam's update included; and 50 images, beam 3, with all 20 steps forced. On a
GPU if the backend finds one. TensorFlow need not be installed.
"""

import sys
import time

import keras
import numpy as np

import keras_caption as kc
from keras_caption.text import teacher_forcing

REGIONS, REGION_DIM, VOCABULARY_SIZE = 36, 2048, 9487
IMAGES, CAPTIONS, TOKENS = 10, 5, 17
DECODED, STEPS = 50, 20


def main(name="ngsan"):
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE)
    model.compile(
        keras.optimizers.Adam(1e-4),
        kc.training.SequenceCrossEntropy(),
        jit_compile=keras.backend.backend() == "jax",
    )
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, VOCABULARY_SIZE, (IMAGES, CAPTIONS, TOKENS + 1))
    batch = teacher_forcing({**images(rng, IMAGES), "tokens": tokens.astype("int32")})
    decoded = images(rng, DECODED)
    print(f"{name} on {keras.backend.backend()}, {device()}", flush=True)
    report(
        f"training step of {IMAGES} x {CAPTIONS} captions",
        lambda: model.train_on_batch(*batch),  # returns the loss as a number
    )
    report(
        f"beam search of {DECODED} images",
        lambda: model.generate_tokens(
            decoded, beam_size=3, max_length=STEPS, min_length=STEPS
        ),
    )


def images(rng, count):
    corners = np.sort(rng.random((count, REGIONS, 2, 2), "float32"), axis=2)
    return {
        "regions": rng.standard_normal((count, REGIONS, REGION_DIM), "float32"),
        "boxes": corners.reshape(count, REGIONS, 4),
    }


def device():
    if keras.backend.backend() == "torch":
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    if keras.backend.backend() == "jax":
        import jax

        return jax.devices()[0].device_kind
    import tensorflow as tf

    return (
        ", ".join(gpu.name for gpu in tf.config.list_physical_devices("GPU")) or "CPU"
    )


def report(what, function, repeats=10):
    """Prints the first call's time, and the median of others after one more."""
    times = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    median = np.median(times[2:])
    print(
        f"{what:36} {1000 * median:8.1f} ms, first call {times[0]:5.1f} s", flush=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
