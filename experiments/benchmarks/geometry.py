"""What NG-SAN's normalized and geometry-aware self-attention cost over self-attention.

    python experiments/benchmarks/geometry.py

One attention layer, 512-d, 8 heads, d_g = 80, batch 10, forward and backward, for
36, 100 and 196 regions: NSA, and GSA by its kind of geometry. Times are CPU times, the
layers' in turn, round by round: medians of 40 rounds, and of the ratios within a round,
so that what else runs changes little. Memory is the greatest resident size, less that
before the layer ran, each in a process of its own.
"""

import statistics
import time

import tensorflow as tf

import keras_caption as kc
from experiments.benchmarks.common import in_a_process, peak_and_seconds

BATCH, DIM, HEADS = 10, 512, 8
KINDS = ("SA", "NSA", "content_independent", "query", "query+key")
ROUNDS = 40


def step_of(kind, regions):
    """A training step of one layer, without its update."""
    x = tf.random.normal((BATCH, regions, DIM))
    corners = tf.sort(tf.random.uniform((BATCH, regions, 2, 2)), axis=2)
    boxes = tf.reshape(corners, (BATCH, regions, 4))
    if kind == "SA":
        layer = kc.layers.MultiHeadAttention(HEADS, DIM // HEADS)
    elif kind == "NSA":
        layer = kc.layers.NormalizedSelfAttention(HEADS, DIM // HEADS)
    else:
        layer = kc.layers.GeometryAwareSelfAttention(HEADS, DIM // HEADS, kind=kind)
    layer.build(x.shape)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            out = tf.reduce_sum(layer(x, boxes=boxes, training=True) ** 2)
        return tape.gradient(out, [x, *layer.trainable_variables])

    return step


def peak_of(kind, regions):
    return peak_and_seconds(step_of(kind, regions))["peak"]


def rounds_of(regions):
    """CPU seconds of a step of each kind, by round."""
    steps = [step_of(kind, regions) for kind in KINDS]
    rounds = []
    for _ in range(ROUNDS + 2):
        rounds.append([])
        for step in steps:
            start = time.process_time()
            step()
            rounds[-1].append(time.process_time() - start)
    return rounds[2:]


def main():
    rows = []
    for regions in (36, 100, 196):
        rounds = in_a_process(rounds_of, regions)
        peaks = [in_a_process(peak_of, kind, regions) for kind in KINDS]
        for i, kind in enumerate(KINDS):
            milliseconds = 1000 * statistics.median(times[i] for times in rounds)
            ratio = statistics.median(times[i] / times[0] for times in rounds)
            of_time = f"{milliseconds:.1f}", f"{ratio:.2f}"
            of_memory = f"{peaks[i]:.0f}", f"{peaks[i] / peaks[0]:.2f}"
            rows.append((str(regions), kind, *of_time, *of_memory))
    columns = ("N", "attention", "CPU time, ms", "time over SA", "peak memory, MB")
    columns += ("memory over SA",)
    print(kc.evaluation.markdown_table(columns, rows, labels=2))


if __name__ == "__main__":
    main()
