"""Functions of an exported graph that XLA compiles for few shapes."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_caption.batches.few_shapes import pad, round_up_in_graph
from keras_caption.inputs import InputKind


def compiled_by_xla(function: Callable, kinds: list[InputKind]) -> Callable:
    """Makes a function that XLA compiles once for each of few shapes.

    Batches are padded within the graph: items of the inputs in
    `InputKind.padded_inputs`, and rows by repeating the last one.

    Args:
        function: Function of a dict that returns a tuple of tensors. The dict holds
            `inputs`, a dict of tensors as `read_served` returns it, and other nested
            structures of tensors. All tensors have a row for each example.
        kinds: List of `InputKind` that the model reads.
    """
    compiled = tf.function(function, autograph=False, jit_compile=True)

    def call(feed: dict[str, Any]) -> tuple[tf.Tensor, ...]:
        inputs = dict(feed["inputs"])
        count = tf.shape(next(iter(inputs.values())))[0]
        for kind in kinds:
            for name in kind.padded_inputs:
                shape = (count, None, *inputs[name].shape[2:])
                inputs[name] = pad(inputs[name], shape, kind.greatest)
        size = tf.where(count > 0, round_up_in_graph(count), 0)
        rows = tf.minimum(tf.range(size), count - 1)  # 0, ..., count - 1, count - 1
        feed = tf.nest.map_structure(
            lambda x: tf.gather(x, rows), {**feed, "inputs": inputs}
        )
        return tuple(x[:count] for x in compiled(feed))

    return call
