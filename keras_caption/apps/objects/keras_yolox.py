import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_caption.apps.objects.cells import DEVIATION, MEAN
from keras_caption.apps.objects.lite_yolox import SAME, add_network
from keras_caption.features.keras_defaults import keras_defaults


@keras_defaults()
def convert_yolox(path: pathlib.Path) -> keras.Model:
    """Converts a YOLOX network of ONNX to one of `keras_caption.objects.Yolox`.

    Args:
        path: Path of the `.onnx` file, as YOLOX's `export_onnx.py` writes it.

    Returns:
        `keras.Model` from float `(batch, size, size, 3)`, normalized by the colours of
        ImageNet, RGB, to float `(batch, cells, 85)`.

    Raises:
        InputError: If the file is missing or damaged, or has an unknown operation or
            other outputs.
    """
    graph = KerasGraph()
    _, values = add_network(graph, path)
    return keras.Model(graph.images, values.value, name="yolox")


class KerasNode(NamedTuple):
    """A tensor of a `KerasGraph`.

    Attributes:
        value: Keras tensor, or the array of a constant.
        shape: tuple of int, for a batch of one.
    """

    value: Any
    shape: tuple[int, ...]


class KerasGraph:
    """Builds a network of Keras by the operators of a `LiteRTGraph`.

    Attributes:
        images: Keras tensor, the input, normalized by the colours of ImageNet.
    """

    images: Any = None

    def input(self, name: str, shape: tuple[int, ...]) -> KerasNode:
        """Adds the input; returns its pixels, 0 to 255."""
        self.images = keras.Input(shape[1:], name=name)
        pixels = keras.layers.Rescaling(DEVIATION, MEAN, name="pixels")
        return KerasNode(pixels(self.images), shape)

    def constant(self, value: Any) -> KerasNode:
        """Adds an array."""
        return KerasNode(value, np.shape(value))

    def add(
        self,
        operator: str,
        inputs: list[KerasNode],
        shape: tuple[int, ...],
        options: str | None = None,
        **values: Any,
    ) -> KerasNode:
        """Adds an operator, as `LiteRTGraph.add` does."""
        made = OPERATORS[operator](values, *(x.value for x in inputs))
        return KerasNode(made, shape)


# === Operators: functions of options and inputs ===


def convolution(values, x, kernel, bias):
    return convolved(values, x, kernel, bias, keras.layers.Conv2D, len(kernel))


def convolution_by_channel(values, x, kernel, bias):
    return convolved(values, x, kernel, bias, keras.layers.DepthwiseConv2D)


def convolved(values, x, kernel, bias, kind, *outputs):
    """The output of a layer of a class that takes `outputs` first."""
    padding = "same" if values["padding"] == SAME else "valid"
    layer = kind(*outputs, kernel.shape[1], values["strideH"], padding)
    made = layer(x)
    layer.set_weights([kernel.transpose(1, 2, 3, 0), bias])
    return made


def part(values, x, begin, end, step):
    """Every few rows and columns of a part of a grid."""
    first, last = begin[1:3], np.subtract(x.shape[1:3], end[1:3])
    if begin[3] or end[3] != x.shape[3] or step[3] != 1:
        raise ValueError("it takes a part of the channels")
    crop = [(int(a), int(b)) for a, b in zip(first, last, strict=True)]
    x = keras.layers.Cropping2D(crop)(x)
    return keras.layers.MaxPooling2D(1, [int(n) for n in step[1:3]])(x)


def blue_first(values, x, axis):
    """Exchanges red and blue."""
    layer = keras.layers.Conv2D(3, 1, use_bias=False, name="blue_first")
    made = layer(x)
    layer.set_weights([np.eye(3, dtype="float32")[::-1].reshape(1, 1, 3, 3)])
    return made


def padded(values, x, sides):
    return keras.layers.ZeroPadding2D(sides[1:3].tolist())(x)


def pooled(values, x):
    return keras.layers.MaxPooling2D(values["filterHeight"], 1, "same")(x)


def enlarged(values, x, size):
    times = size[0] // x.shape[1], size[1] // x.shape[2]
    return keras.layers.UpSampling2D(tuple(map(int, times)))(x)


def joined(values, *parts):
    return keras.layers.Concatenate(values["axis"])(parts)


OPERATORS: dict[str, Callable[..., Any]] = {
    "REVERSE_V2": blue_first,
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": convolution_by_channel,
    "PAD": padded,
    "MAX_POOL_2D": pooled,
    "STRIDED_SLICE": part,
    "CONCATENATION": joined,
    "RESIZE_NEAREST_NEIGHBOR": enlarged,
    "RESHAPE": lambda _, x, shape: keras.layers.Reshape(shape[1:].tolist())(x),
    "ADD": lambda _, x, y: keras.layers.Add()([x, y]),
    "MUL": lambda _, x, y: keras.layers.Multiply()([x, y]),
    "LOGISTIC": lambda _, x: keras.layers.Activation("sigmoid")(x),
}
