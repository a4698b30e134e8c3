"""What NG-SAN's normalized and geometry-aware self-attention cost over self-attention.

    python experiments/benchmarks/geometry.py

One attention layer, 512-d, 8 heads, d_g = 80, batch 10, forward and backward, for
36, 100 and 196 regions: NSA, and GSA by its kind of geometry. Each measurement has a
process of its own, so that its peak memory is known: the greatest resident size, less
that before the layer ran.
"""

import tensorflow as tf

import keras_caption as kc
from experiments.benchmarks.common import in_a_process, peak_and_seconds

BATCH, DIM, HEADS = 10, 512, 8


def measure(kind, regions):
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
            out = tf.reduce_sum(layer(x, boxes=boxes) ** 2)
        return tape.gradient(out, [x, *layer.trainable_variables])

    return peak_and_seconds(step)


def main():
    rows = []
    for regions in (36, 100, 196):
        plain = None
        for kind in ("SA", "NSA", "content_independent", "query", "query+key"):
            measured = in_a_process(measure, kind, regions)
            plain = plain or measured
            time, peak = measured["time"], measured["peak"]
            times = f"{1000 * time:.1f}", f"{time / plain['time']:.2f}"
            peaks = f"{peak:.0f}", f"{peak / plain['peak']:.2f}"
            rows.append((str(regions), kind, *times, *peaks))
    columns = "N", "attention", "time, ms", "over SA", "peak memory, MB", "over SA"
    print(kc.evaluation.markdown_table(columns, rows, labels=2))


if __name__ == "__main__":
    main()
