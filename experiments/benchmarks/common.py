"""Inputs of the papers' sizes, and measurements of time and memory."""

import concurrent.futures
import contextlib
import multiprocessing
import resource
import statistics
import time
from typing import NamedTuple

import numpy as np

REGIONS, REGION_DIM, VOCABULARY_SIZE = 36, 2048, 9487


def transformer(layers, d, inner, words):
    """Shapes of a Transformer's weights, of which each row is multiplied once.

    Args:
        layers: int, layers of the encoder and of the decoder, each.
        d, inner: int, sizes of the model and of its feed-forward layers.
        words: int, size of the vocabulary.

    Returns:
        Two lists of pairs of int: the shapes of the encoder, keys and values of the
        decoder's attention to it included, and those of the decoder.
    """
    block = [(d, inner), (inner, d)]
    encoder = [*layers * [*4 * [(d, d)], *block], *2 * layers * [(d, d)]]
    decoder = [*layers * [*6 * [(d, d)], *block], (d, words)]
    return encoder, decoder


def multiplications(shapes):
    """Multiplications of one row with weights of some shapes."""
    return sum(a * b for a, b in shapes)


def arrays(batch, regions=REGIONS):
    """Random inputs of a region model, in NumPy."""
    rng = np.random.default_rng(0)
    corners = np.sort(rng.random((batch, regions, 2, 2)), axis=2)
    return {
        "regions": rng.normal(size=(batch, regions, REGION_DIM)).astype("float32"),
        "boxes": corners.reshape(batch, regions, 4).astype("float32"),
    }


def images(batch, regions=REGIONS):
    """Random inputs of a region model."""
    import tensorflow as tf

    return {name: tf.constant(x) for name, x in arrays(batch, regions).items()}


def seconds(function, repeats=10):
    """Median time of a call, after two calls to warm up."""
    times = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def matmul_rate(size=2048):
    """Floating-point operations a second of a plain large matrix product."""
    import tensorflow as tf

    x = tf.random.normal((size, size))
    product = tf.function(lambda: tf.matmul(x, x))
    return 2 * size**3 / seconds(product, repeats=20)


def peak_memory():
    """Peak resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_memory(pid="self"):
    """Resident memory of a process now, by default this one's, in MB."""
    with open(f"/proc/{pid}/statm") as file:
        pages = int(file.read().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_and_seconds(step, repeats=10):
    """Measures time and peak memory of a call; to be run by `in_a_process`.

    Args:
        step: Function without arguments.
        repeats: int, number of calls whose median time is taken.

    Returns:
        dict of `time` in seconds and `peak` in MB.
    """
    import tensorflow as tf

    x = tf.random.normal((64, 64))
    tf.matmul(x, x)  # threads and their buffers
    before = peak_memory()
    time = seconds(step, repeats)
    return {"time": time, "peak": peak_memory() - before}


def in_a_process(function, *args):
    """Calls a function in a fresh process, and returns its result."""
    fresh = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=fresh) as pool:
        return pool.submit(function, *args).result()


class Times(NamedTuple):
    """Median seconds of a call: by the clock, and of all threads on processors."""

    wall: float
    cpu: float


def in_turn(makers, *args, repeats=5):
    """Median times of functions, each in a process of its own, called in turn.

    Args:
        makers: dict from a name to a function of a module, which makes of `args` the
            function without arguments that is timed.
        *args: Arguments of the makers.
        repeats: int, number of calls, after two to warm up.

    Returns:
        dict of `Times`.
    """
    fresh = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        processes = {
            name: stack.enter_context(
                concurrent.futures.ProcessPoolExecutor(
                    1, fresh, initializer=_prepare, initargs=(make, args)
                )
            )
            for name, make in makers.items()
        }
        times = {name: [] for name in makers}
        for _ in range(repeats + 2):
            for name, process in processes.items():
                times[name].append(process.submit(_turn).result())
    return {
        name: Times(*map(statistics.median, zip(*turns[2:], strict=True)))
        for name, turns in times.items()
    }


def _prepare(make, args):
    _turn.function = make(*args)


def _turn():
    """Seconds of one call in the process of `in_turn`: by the clock, and of threads."""
    start = time.perf_counter(), time.process_time()
    _turn.function()
    return time.perf_counter() - start[0], time.process_time() - start[1]
