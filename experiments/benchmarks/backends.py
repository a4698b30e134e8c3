"""Training steps and a beam search on the backend of Keras that runs.

    KERAS_BACKEND=jax python experiments/benchmarks/backends.py [MODEL]

At the papers' size, see training_step.py: cross-entropy of 10 images x 5 captions of 17
tokens and, but on PyTorch, a self-critical step of 10 images x 5 samples, Adam's update
included; 50 images, beam 3, with all 20 steps forced; and 64 sentences of the small
translator of `forced_translation.py`. On a GPU if the backend finds one. TensorFlow
need not be installed. Prints seconds by the clock, and those of all threads on the
processor, on which they depend less if other programs run.
"""

import statistics
import sys
import time

import keras
import numpy as np

import keras_caption as kc
from experiments.benchmarks import forced_translation
from experiments.benchmarks.common import VOCABULARY_SIZE, arrays
from keras_caption.text import teacher_forcing

IMAGES, CAPTIONS, TOKENS = 10, 5, 17
DECODED, STEPS, REPEATS = 50, 20, 7


def main(name="ngsan"):
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE)
    model.compile(
        keras.optimizers.Adam(1e-4),
        kc.training.SequenceCrossEntropy(),
        jit_compile=keras.backend.backend() == "jax",
    )
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, VOCABULARY_SIZE, (IMAGES, CAPTIONS, TOKENS + 1))
    batch = teacher_forcing({**arrays(IMAGES), "tokens": tokens.astype("int32")})
    decoded = arrays(DECODED)
    print(f"{name} on {keras.backend.backend()}, {device()}", flush=True)
    report(
        f"training step of {IMAGES} x {CAPTIONS} captions",
        lambda: model.train_on_batch(*batch),  # returns the loss as a number
    )
    if keras.backend.backend() != "torch":
        references = tokens[:, :, 1:].astype("int32")
        reward = kc.rewards.CiderD.from_references(references)
        trainer = kc.training.SelfCritical(model, reward, max_length=STEPS)
        trainer.compile(keras.optimizers.Adam(1e-5), jit_compile=model.jit_setting)
        scored = {**arrays(IMAGES), "references": references}
        report(
            f"self-critical step of {IMAGES} x 5 samples",
            lambda: trainer.train_on_batch(scored),
        )
    report(
        f"beam search of {DECODED} images",
        lambda: model.generate_tokens(
            decoded, beam_size=3, max_length=STEPS, min_length=STEPS
        ),
    )
    translated = forced_translation.WORKS[0]
    report(
        f"translation of {translated.sentences} sentences",
        forced_translation.ours(translated),
    )


def device():
    if keras.backend.backend() == "torch":
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    if keras.backend.backend() == "jax":
        import jax

        return jax.devices()[0].device_kind
    import tensorflow as tf

    names = [gpu.name for gpu in tf.config.list_physical_devices("GPU")]
    return ", ".join(names) or "CPU"


def report(what, function):
    """Prints the time of the first call, and the medians of later ones."""
    times = []
    for _ in range(REPEATS + 2):
        begun = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
    clock, cpu = map(statistics.median, zip(*times[2:], strict=True))
    print(
        f"{what:36} {clock:7.3f} s, {cpu:7.3f} CPU s; first call "
        f"{times[0][0]:5.1f} s, {times[0][1]:5.1f} CPU s",
        flush=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
