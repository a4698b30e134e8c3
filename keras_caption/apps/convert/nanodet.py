from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_caption.apps.objects import NanoDet
from keras_caption.base.errors import InputError
from keras_caption.features.keras_defaults import keras_defaults
from keras_caption.formats.ncnn_files import NcnnLayer

CLASSES, DISTANCES = 80, 32  # values of a cell
IMAGE_SIZE = 416
# Numbers of parameters, see ncnn's operators.
KERNEL, STRIDE, PAD, ACTIVATION, SLOPE, GROUP = 1, 3, 4, 9, 10, 7
LEAKY = 2  # of activations
EVEN = -233.0  # of slices: what is left, in equal parts


@keras_defaults()
def convert_nanodet(layers: list[NcnnLayer]) -> keras.Model:
    """Converts a NanoDet-Plus of ncnn to a network of `keras_caption.objects.NanoDet`.

    Args:
        layers: List of `NcnnLayer`, from `read_ncnn`.

    Returns:
        `keras.Model` from float `(batch, 416, 416, 3)` to float `(batch, cells, 112)`:
        of each cell of the grids of strides 8 to 64, row by row, the scores of 80
        categories, and the logits of the distances of four sides.

    Raises:
        InputError: If a layer is unknown, or the network has other outputs.
    """
    image = keras.Input((IMAGE_SIZE, IMAGE_SIZE, 3), name="image")
    found = {}
    for layer in layers:
        if layer.kind == "Input":
            found[layer.outputs[0]] = image
            continue
        if layer.kind not in BUILDERS:
            raise InputError(f"The layer {layer.name} is a {layer.kind}: unknown here.")
        try:
            inputs = [found[name] for name in layer.inputs]
            outputs = BUILDERS[layer.kind](layer, *inputs)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"The layer {layer.name} cannot be converted: {error!r:.100}."
            ) from None
        found |= zip(layer.outputs, outputs, strict=True)
    grids = []
    for stride in NanoDet.strides_of_grids:
        parts = [found.get(name.format(stride)) for name in ("cls{}", "dis{}_pre")]
        sizes = [x if x is None else x.shape[-1] for x in parts]
        if sizes != [CLASSES, DISTANCES]:
            raise InputError(
                f"NanoDet-Plus has cls{stride} and dis{stride}_pre of {CLASSES} and "
                f"{DISTANCES} values. Received: {sizes[0]} and {sizes[1]}"
            )
        grid = keras.layers.Concatenate()(parts)
        cells = keras.layers.Reshape((-1, CLASSES + DISTANCES))(grid)
        grids.append(cells)
    return keras.Model(image, keras.layers.Concatenate(axis=1)(grids), name="nanodet")


def convolution(layer, x):
    """A convolution, all of it or by channels, and its activation."""
    values, size = layer.values, layer.values[KERNEL]
    if pad := values.get(PAD, 0):
        x = keras.layers.ZeroPadding2D(pad)(x)
    options = {"strides": values.get(STRIDE, 1), "use_bias": layer.bias is not None}
    outputs = len(layer.weights)
    kernel = layer.weights.reshape(outputs, -1, size, size)
    if layer.kind == "ConvolutionDepthWise":
        if values[GROUP] != outputs or outputs != x.shape[-1]:
            raise ValueError("its groups have several channels")
        conv = keras.layers.DepthwiseConv2D(size, name=layer.name, **options)
        kernel = kernel.transpose(2, 3, 0, 1)
    else:
        conv = keras.layers.Conv2D(outputs, size, name=layer.name, **options)
        kernel = kernel.transpose(2, 3, 1, 0)
    x = conv(x)
    bias = [] if layer.bias is None else [layer.bias]
    conv.set_weights([kernel, *bias])
    if ACTIVATION in values:
        if values[ACTIVATION] != LEAKY:
            raise ValueError("its activation is not leaky")
        x = keras.layers.LeakyReLU(layer.values[SLOPE][0])(x)
    return [x]


def pooling(layer, x):
    """The greatest value in a window, of 3 x 3 with one more row on each side."""
    values = layer.values
    if values.get(0, 0) != 0 or values.get(3) != 1:
        raise ValueError("it is no maximum of 3 x 3")
    x = ops.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=-1e30)
    return [keras.layers.MaxPooling2D(values[1], values[2])(x)]


def shuffle(layer, x):
    """Channels of several groups, in turn."""
    groups = layer.values.get(0, 1)
    height, width, channels = x.shape[1:]
    x = keras.layers.Reshape((height * width, groups, channels // groups))(x)
    x = keras.layers.Permute((1, 3, 2))(x)
    return [keras.layers.Reshape((height, width, channels))(x)]


def parts(layer, x):
    """Parts of the channels."""
    sizes, left = [], x.shape[-1]
    for i, size in enumerate(layer.values[0]):
        even = left // (len(layer.values[0]) - i)
        sizes.append(even if size == EVEN else int(size))
        left -= sizes[-1]
    return ops.split(x, np.cumsum(sizes)[:-1].tolist(), axis=-1)


def enlarged(layer, x):
    """A grid of twice the height and width, bilinear."""
    values = layer.values
    if (values.get(0), values.get(1), values.get(2), values.get(6, 0)) != (2, 2, 2, 0):
        raise ValueError("it does not enlarge by two")
    return [keras.layers.UpSampling2D(2, interpolation="bilinear")(x)]


def added(layer, x, y):
    """The sum of two grids."""
    if layer.values.get(0, 0) != 0:
        raise ValueError("it is no sum")
    return [keras.layers.Add()([x, y])]


BUILDERS: dict[str, Callable[..., list[Any]]] = {
    "Convolution": convolution,
    "ConvolutionDepthWise": convolution,
    "Pooling": pooling,
    "Split": lambda layer, x: [x] * len(layer.outputs),
    "Concat": lambda layer, *x: [keras.layers.Concatenate()(list(x))],
    "ShuffleChannel": shuffle,
    "Slice": parts,
    "Interp": enlarged,
    "BinaryOp": added,
    "Sigmoid": lambda layer, x: [keras.layers.Activation("sigmoid")(x)],
    "Permute": lambda layer, x: [x],  # of outputs that are read before it
}
