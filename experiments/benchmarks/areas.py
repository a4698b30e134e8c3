"""Area attention's memory, against the naive way of summing every area.

    python experiments/benchmarks/areas.py

Keys and values of 8 heads of 64, batch 10, forward and backward, on grids of 8 x 8
and 14 x 14, for areas up to 2 x 2, 3 x 3, 4 x 4 and 5 x 5. The naive way sums the
items of every area of one size by a pass over all its places, cut by `tf.slice`, whose
gradient is faster than that of indexing. Each measurement has a process of its own, so
that its peak memory is known: the greatest resident size, less that before.
"""

import tensorflow as tf

from experiments.benchmarks.common import in_a_process, peak_and_seconds
from keras_caption.evaluation import markdown_table
from keras_caption.layers import AreaMemory

BATCH, HEADS, DIM = 10, 8, 64


def naive_sums(x, side, most):
    """Sums of all areas, each position of each size summed separately."""
    grid = tf.reshape(x, (BATCH, HEADS, side, side, DIM))
    rows = []
    for height in range(1, most + 1):
        for width in range(1, most + 1):
            down, across = side - height + 1, side - width + 1
            shape = (BATCH, HEADS, down, across, DIM)
            total = tf.add_n(
                [
                    tf.slice(grid, (0, 0, i, j, 0), shape)
                    for i in range(height)
                    for j in range(width)
                ]
            )
            rows.append(tf.reshape(total, (BATCH, HEADS, down * across, DIM)))
    return tf.concat(rows, axis=2)


def measure(way, side, most):
    x = tf.random.normal((BATCH, HEADS, side * side, DIM))
    memory = AreaMemory(most, most, grid_width=side)

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            if way == "naive":
                sums = naive_sums(x, side, most)
            else:
                _, sums = memory(x, x)
            out = tf.reduce_sum(sums**2)
        return tape.gradient(out, x)

    return peak_and_seconds(step)


def main():
    rows = []
    for side in (8, 14):
        for most in (2, 3, 4, 5):
            ours, naive = (
                in_a_process(measure, way, side, most) for way in ("ours", "naive")
            )
            times = f"{1000 * ours['time']:.1f}", f"{naive['time'] / ours['time']:.2f}"
            peaks = f"{ours['peak']:.0f}", f"{naive['peak']:.0f}"
            rows.append((f"{side} x {side}", f"{most} x {most}", *times, *peaks))
    columns = ["grid", "areas up to", "ours, ms", "naive over ours"]
    print(markdown_table([*columns, "memory, MB", "naive's"], rows, labels=2))


if __name__ == "__main__":
    main()
