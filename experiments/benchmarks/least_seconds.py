"""The least seconds that searches and a self-critical step can take on this machine.

    taskset --cpu-list 0 python experiments/benchmarks/least_seconds.py

counts, for each work, the floating-point operations of its products with weights, and
the bytes of weights and caches that it reads; measures, in the same run, the rate of a
large product, the bandwidth of reading memory, and those products alone, one after
another at their own shapes, by XLA where it compiles the work; and prints them beside
the seconds that the work takes. Seconds are of processors, all four in turn, medians of
three.

A step of a search reads all weights of the decoder once, and the keys and values so far
once. Not counted are attention's own products and geometry, softmax, the choice of
tokens, the reordering of caches, the optimizer, and the starts of operations: what a
work takes beyond its products is theirs. Weights that fit into the processor's cache
need not be read from memory.
"""

import argparse
import functools

import numpy as np

from experiments.benchmarks import accelerator
from experiments.benchmarks.accelerator import BEAMS, CAPTIONS, WORDS
from experiments.benchmarks.beside_peers import ours
from experiments.benchmarks.common import (
    REGION_DIM,
    REGIONS,
    VOCABULARY_SIZE,
    in_turn,
    multiplications,
    transformer,
)
from experiments.benchmarks.forced_translation import (
    BEAM_SIZE,
    LENGTH,
    PRODUCT,
    PRODUCT_SIZE,
    SOURCE_LENGTH,
    large_product,
)

FLOAT = 4  # bytes
READ = 1 << 28  # bytes that are read to measure the bandwidth, more than caches hold
WORKS = (
    "self-critical, 10 images",
    "beam 3, 50 images",
    "translation 4 + 4 x 128, 64 sentences",
    "translation 6 + 6 x 512, 64 sentences",
    "translation 6 + 6 x 512, one sentence",
)


def passes(work):
    """The products of a work with weights, and the bytes of caches that it reads.

    Args:
        work: str, one of `WORKS`.

    Returns:
        Tuple of a list of passes, each of its number of repetitions, the rows of its
        inputs and the shapes of its weights, and of an int, bytes.
    """
    if work.startswith("translation"):
        return of_translation(
            accelerator.translated(
                "small" if "128" in work else "large", 1 if "one" in work else 64
            )
        )
    if work.startswith("beam"):
        return of_captions(50, BEAMS)
    searched, caches = of_captions(10, CAPTIONS + 1)
    trained, _ = of_captions(10, CAPTIONS, at_once=True)
    # Forward, and backward by inputs and by weights.
    return searched + [(3 * times, *rest) for times, *rest in trained], caches


def of_captions(images, captions, at_once=False):
    """`passes` of NG-SAN's search, or of its training on whole captions `at_once`."""
    encoder, decoder = transformer(4, 512, 2048, VOCABULARY_SIZE)
    encoder = [(REGION_DIM, 512), *encoder]
    rows = images * captions
    steps = (1, rows * WORDS) if at_once else (WORDS, rows)
    tokens = rows * sum(range(WORDS)) + images * REGIONS * WORDS
    return [(1, images * REGIONS, encoder), (*steps, decoder)], cached(tokens, 4, 512)


def of_translation(work):
    """`passes` of a `forced_translation.Work`."""
    rows, read = work.sentences * BEAM_SIZE, work.sentences * SOURCE_LENGTH
    tokens = rows * sum(range(LENGTH)) + read * LENGTH
    caches = cached(tokens, work.num_layers, work.model_dim)
    return [(1, read, work.shapes[0]), (LENGTH, rows, work.shapes[1])], caches


def cached(tokens, layers, d):
    """Bytes of the keys and values of tokens, in all layers."""
    return tokens * layers * 2 * d * FLOAT


def operations(passes):
    """Floating-point operations of `passes`."""
    return sum(2 * n * rows * multiplications(pairs) for n, rows, pairs in passes)


def weights(passes):
    """Bytes of the weights that `passes` read."""
    return FLOAT * sum(n * multiplications(pairs) for n, _, pairs in passes)


def products(work):
    """The products of a work alone, as a function without arguments."""
    import tensorflow as tf

    made = [
        (
            times,
            {a: tf.random.normal((rows, a)) for a, _ in pairs},
            [tf.random.normal(pair) for pair in pairs],
        )
        for times, rows, pairs in passes(work)[0]
    ]

    def one_pass(inputs, matrices):
        return [tf.matmul(inputs[matrix.shape[0]], matrix) for matrix in matrices]

    if " one " in work:  # what `ours` compiles
        one_pass = tf.function(one_pass, jit_compile=True)

    def all_passes():
        for times, inputs, matrices in made:
            for _ in range(times):
                one_pass(inputs, matrices)

    return all_passes


def reading(work):
    """Reads memory once, as a function without arguments."""
    memory = np.ones((READ // FLOAT // 1024, 1024), "float32")
    return functools.partial(np.matmul, memory, memory[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--works", nargs="+", default=WORKS, choices=WORKS)
    options = parser.parse_args()
    makers = {"products": products, "measured": ours, PRODUCT: large_product}
    makers["reading"] = reading
    print("| work | GFLOP | GFLOP/s | s | GB | GB/s | s | products | measured |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for work in options.works:
        counted, caches = passes(work)
        count, read = operations(counted), weights(counted) + caches
        taken = {x: t.cpu for x, t in in_turn(makers, work, repeats=3).items()}
        rate, bandwidth = 2 * PRODUCT_SIZE**3 / taken[PRODUCT], READ / taken["reading"]
        columns = (
            *(f"{count / 1e9:.1f}", f"{rate / 1e9:.0f}", f"{count / rate:.2f}"),
            *(f"{read / 1e9:.2f}", f"{bandwidth / 1e9:.1f}", f"{read / bandwidth:.2f}"),
            *(f"{taken[name]:.2f}" for name in ("products", "measured")),
        )
        print(f"| {work} | {' | '.join(columns)} |", flush=True)


if __name__ == "__main__":
    main()
