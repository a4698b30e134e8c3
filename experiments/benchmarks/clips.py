"""From clips to captions: preparing them, a training step, and captioning.

    python experiments/benchmarks/clips.py [MODEL [CLIPS]]

Clips of 10 s, 320 x 240 at 25 frames a second, become 20 frames of 1,024 features, by
MobileNet at 224 pixels, with random weights: 50 of them. Peak memory is of preparing
100 and 1,000 clips, by a smaller network at 96 pixels, in processes of their own, above
what importing takes. A training step is one of cross-entropy, of 10 videos x 5 captions
of 17 tokens, the vocabulary 9,487 words; captions are of beam 3 and 20 words, batch 50.
"""

import os
import pathlib
import sys
import tempfile
import time

import av
import keras
import numpy as np
import tensorflow as tf

import keras_caption as kc
from experiments.benchmarks.common import (
    VOCABULARY_SIZE,
    in_a_process,
    peak_memory,
    seconds,
)
from keras_caption.text import teacher_forcing

FRAMES, FRAME_DIM = 20, 1024
VIDEOS, CAPTIONS, TOKENS = 10, 5, 17
TIMED = 50  # clips
LARGE = {"image_size": 224}
SMALL = {"image_size": 96, "arguments": {"alpha": 0.25}}


def write_clips(folder, count):
    """Clips of the same content, links to one file."""
    first = folder / "0.mp4"
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (240, 320 + 250, 3)).astype("uint8")
    with av.open(str(first), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for start in range(250):  # the image moves to the left
            pixels = np.ascontiguousarray(image[:, start : start + 320])
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    for number in range(1, count):
        os.link(first, folder / f"{number}.mp4")


def prepare(count, options):
    """Prepares clips; returns the time in seconds and the peak memory in MB."""
    extractor = kc.features.ClipExtractor(kc.features.Extractor(**options), FRAMES)
    with tempfile.TemporaryDirectory() as temporary:
        clips, output = (pathlib.Path(temporary) / name for name in ("clips", "out"))
        clips.mkdir()
        write_clips(clips, count)
        before, start = peak_memory(), time.monotonic()
        kc.prepare.prepare_clips(clips, {}, extractor, output)
        return time.monotonic() - start, peak_memory() - before


def training_step(name):
    """Time of a training step, forward, backward and update."""
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE, frame_dim=FRAME_DIM)
    rng = np.random.default_rng(0)
    shape = VIDEOS, CAPTIONS, TOKENS + 1
    batch = {
        "frames": tf.constant(rng.normal(size=(VIDEOS, FRAMES, FRAME_DIM)), tf.float32),
        "tokens": tf.constant(rng.integers(4, VOCABULARY_SIZE, shape), tf.int32),
    }
    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            inputs, targets, weights = teacher_forcing(batch)
            loss = model.loss(targets, model(inputs, training=True), weights)
        optimizer.apply(tape.gradient(loss, model.trainable_variables))

    return seconds(step)


def captions_per_second(name, batch=50):
    model = kc.models.create(name, vocabulary_size=VOCABULARY_SIZE, frame_dim=FRAME_DIM)
    frames = np.random.default_rng(0).normal(size=(batch, FRAMES, FRAME_DIM))
    inputs = {"frames": frames.astype("float32")}
    options = {"beam_size": 3, "max_length": 20, "batch_size": batch}
    return batch / seconds(lambda: model.generate_tokens(inputs, **options), repeats=5)


def main(name="video_nsa", count="1000"):
    time_of, _ = in_a_process(prepare, TIMED, LARGE)
    print(f"decoded and featurized: {TIMED / time_of:.1f} clips/s")
    for clips in (100, int(count)):
        time_of, memory = in_a_process(prepare, clips, SMALL)
        print(
            f"{clips:,} clips, smaller network: {clips / time_of:.1f} clips/s, "
            f"{memory:.0f} MB of memory"
        )
    print(f"{name}, training step: {training_step(name):.3f} s")
    print(f"{name}, beam 3: {captions_per_second(name):.0f} captions/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
