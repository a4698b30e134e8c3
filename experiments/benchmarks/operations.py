"""What the operations of a work take, by TensorFlow's profiler on one thread.

    taskset --cpu-list 0 python experiments/benchmarks/operations.py

prints, for works of `accelerator.py`, the share of each kind of operation in the time
of a call, the median of `REPEATS`, and how often it runs. What is left, the executor's
work between operations and Python's, is in the last row. The profiler itself takes time
for each operation, so that small ones seem longer than they are.
"""

import argparse
import collections
import pathlib
import re
import statistics
import tempfile

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from experiments.benchmarks import accelerator
from keras_caption.evaluation import markdown_table

REPEATS = 5
LEAST = 0.5  # percent; kinds with less are summed
WORKS = (
    "translation 4 + 4 x 128, 64 sentences",
    "translation 6 + 6 x 512, 64 sentences",
    "beam 3, 50 images",
)
# An event of an operation is named `place:kind`, such as `while/key/BiasAdd:BiasAdd`.
OPERATION = re.compile(r"[^:]+:(_?[A-Z]\w*)")
WHOLE = "run"  # the event of a whole call
REST, SMALL = "between operations", "all others"


def kinds_of(step):
    """Seconds and number of the operations of a call, by kind, and its seconds."""
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=0
    )
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder, options):
            step()
        [path] = pathlib.Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
    seconds, count, whole = collections.Counter(), collections.Counter(), 0.0
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            name = plane.event_metadata[event.metadata_id].name
            taken = event.duration_ps / 1e12
            if name == WHOLE:
                whole += taken
            elif found := OPERATION.fullmatch(name):
                kind = found[1].removeprefix("_Mkl").removeprefix("Native")
                seconds[kind] += taken
                count[kind] += 1
    return seconds, count, whole


def rows_of(work):
    """Rows of kinds, the greatest share first, each with its number in a call."""
    step, _ = accelerator.WORKS[work]()
    step(), step()  # which trace
    calls = [kinds_of(step) for _ in range(REPEATS)]
    count = calls[0][1]
    percent = {
        kind: statistics.median(
            100 * seconds[kind] / whole for seconds, _, whole in calls
        )
        for kind in count
    }
    large = sorted((x for x in percent if percent[x] >= LEAST), key=percent.get)[::-1]
    rows = [(kind, f"{percent[kind]:.1f}", f"{count[kind]:,}") for kind in large]
    small = [x for x in percent if x not in large]
    rows.append(
        (
            SMALL,
            f"{sum(map(percent.get, small)):.1f}",
            f"{sum(map(count.get, small)):,}",
        )
    )
    return [*rows, (REST, f"{100 - sum(percent.values()):.1f}", "")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--works", nargs="+", default=WORKS)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for work in parser.parse_args().works:
        print(f"{work}\n", flush=True)
        print(markdown_table(("operation", "percent", "times"), rows_of(work)), "\n")


if __name__ == "__main__":
    main()
