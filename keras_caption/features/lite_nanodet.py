import math
import pathlib

import numpy as np

from keras_caption.atomic import replacing
from keras_caption.errors import InputError
from keras_caption.features.cells import DEVIATION, MEAN, cells_of
from keras_caption.features.lite_detector import write_description
from keras_caption.features.suppression import Suppression
from keras_caption.formats.engine_files import DETECTOR_FILES, FILES
from keras_caption.formats.litert_graph import LiteRTGraph, Node
from keras_caption.formats.ncnn_files import (
    ACTIVATION,
    EVEN,
    GROUP,
    KERNEL,
    LEAKY,
    PAD,
    SLOPE,
    STRIDE,
    NcnnLayer,
    read_ncnn,
)

IMAGE_SIZE, MAX_OBJECTS = 416, 36
CLASSES, BINS = 80, 8  # of a cell; distances to a side, in strides
STRIDES = (8, 16, 32, 64)  # of grids, in pixels
OVERLAP = 0.6  # intersection over union of two objects of a category, at most
VALID, INT32 = 1, 2  # a padding and a type of LiteRT


def write_nanodet(path: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes a NanoDet-Plus of ncnn as a folder for LiteRT, without TensorFlow.

    The folder is as `keras_caption.serving.export_detector` writes it, and the boxes,
    scores and categories are those of `keras_caption.features.NanoDet`.

    Args:
        path: Path of the `.param` file; the `.bin` file is beside it.
        folder: Path of the folder, which appears whole or not at all.

    Raises:
        InputError: If a file is missing or damaged, a layer is unknown, the network has
            other outputs, or the package of LiteRT is missing.
    """
    graph = LiteRTGraph()
    outputs = add_network(graph, read_ncnn(path))
    suppression = Suppression(OVERLAP, by_category=True)
    with replacing(folder, DETECTOR_FILES) as partial:
        partial.mkdir()
        graph.write(partial / FILES["litert"], outputs)
        write_description(
            partial, "nanodet", IMAGE_SIZE, False, MAX_OBJECTS, suppression
        )


def add_network(graph: LiteRTGraph, layers: list[NcnnLayer]) -> dict[str, Node]:
    """Adds all layers and the decoding of cells; returns the outputs by name."""
    images = graph.input("images", (1, IMAGE_SIZE, IMAGE_SIZE, 3))
    found = {}
    for layer in layers:
        if layer.kind == "Input":
            found[layer.outputs[0]] = normalized(graph, images)
            continue
        if layer.kind not in WRITERS:
            raise InputError(f"The layer {layer.name} is a {layer.kind}: unknown here.")
        try:
            inputs = [found[name] for name in layer.inputs]
            outputs = WRITERS[layer.kind](graph, layer, *inputs)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"The layer {layer.name} cannot be converted: {error!r:.100}."
            ) from None
        found |= zip(layer.outputs, outputs, strict=True)
    scores, distances = [], []
    for stride in STRIDES:
        for name, size, grids in (
            (f"cls{stride}", CLASSES, scores),
            (f"dis{stride}_pre", 4 * BINS, distances),
        ):
            node = found.get(name)
            if node is None or node.shape[-1] != size:
                received = None if node is None else node.shape[-1]
                raise InputError(
                    f"NanoDet-Plus has an output {name} of {size} values. Received: "
                    f"{received}"
                )
            cells = math.prod(node.shape[:-1])
            grids.append(reshaped(graph, node, (1, cells, size)))
    cells, strides = cells_of(IMAGE_SIZE, STRIDES)
    scores = joined(graph, scores, 1)
    boxes = boxes_of(graph, joined(graph, distances, 1), cells, strides)
    axis, shape = graph.constant(np.int32(2)), scores.shape[:2]
    best = graph.add(
        "REDUCE_MAX", [scores, graph.constant(np.int32([2]))], shape, "Reducer"
    )
    categories = graph.add(
        *("ARG_MAX", [scores, axis], shape, "ArgMax", "int32"), outputType=INT32
    )
    return {"boxes": boxes, "scores": best, "categories": categories}


def normalized(graph, images):
    """Images with blue first, in standard deviations from the mean."""
    mean, scale = np.float32(MEAN), 1 / np.float32(DEVIATION)
    values = [graph.constant(x.astype("float32")) for x in (mean, scale)]
    x = graph.add("SUB", [images, values[0]], images.shape, "Sub")
    x = graph.add("MUL", [x, values[1]], x.shape, "Mul")
    return graph.add("REVERSE_V2", [x, graph.constant(np.int32([3]))], x.shape)


def boxes_of(graph, logits, cells, strides):
    """Boxes in pixels: the expected distances of the sides from the centres."""
    count = len(cells)
    shares = reshaped(graph, logits, (4 * count, BINS))
    shares = graph.add("SOFTMAX", [shares], shares.shape, "Softmax", beta=1.0)
    bins = graph.constant(np.arange(BINS, dtype="float32")[None])
    none = Node(-1, ())  # no bias
    sides = graph.add(
        *("FULLY_CONNECTED", [shares, bins, none], (4 * count, 1), "FullyConnected"),
    )
    sides = reshaped(graph, sides, (1, count, 4))
    # Distances to the left and the top are subtracted.
    signed = graph.constant(strides[None] * np.float32([-1, -1, 1, 1]))
    centres = graph.constant(np.tile(cells * strides, 2)[None])
    sides = graph.add("MUL", [sides, signed], sides.shape, "Mul")
    return graph.add("ADD", [sides, centres], sides.shape, "Add")


def reshaped(graph, x, shape):
    return graph.add("RESHAPE", [x, graph.constant(np.int32(shape))], shape, "Reshape")


def joined(graph, parts, axis):
    shape = [*parts[0].shape]
    shape[axis] = sum(x.shape[axis] for x in parts)
    return graph.add("CONCATENATION", parts, shape, "Concatenation", axis=axis)


def padded(graph, x, pad, value=None):
    """A grid with `pad` more rows and columns on each side."""
    _, height, width, channels = x.shape
    shape = (1, height + 2 * pad, width + 2 * pad, channels)
    sides = graph.constant(np.int32([[0, 0], [pad, pad], [pad, pad], [0, 0]]))
    if value is None:
        return graph.add("PAD", [x, sides], shape, "Pad")
    return graph.add(
        "PADV2", [x, sides, graph.constant(np.float32(value))], shape, "PadV2"
    )


def slid(x, size, stride, channels):
    """The shape of what windows over a grid compute."""
    height, width = ((n - size) // stride + 1 for n in x.shape[1:3])
    return 1, height, width, channels


def convolution(graph, layer, x):
    """A convolution, all of it or by channels, and its activation."""
    values, size = layer.values, layer.values[KERNEL]
    pad, stride = values.get(PAD, 0), values.get(STRIDE, 1)
    outputs = len(layer.weights)
    if pad:
        x = padded(graph, x, pad)
    kernel = layer.weights.reshape(outputs, -1, size, size)
    bias = np.zeros(outputs, "float32") if layer.bias is None else layer.bias
    options = {"padding": VALID, "strideW": stride, "strideH": stride}
    if layer.kind == "ConvolutionDepthWise":
        if values[GROUP] != outputs or outputs != x.shape[-1]:
            raise ValueError("its groups have several channels")
        operator, kind = "DEPTHWISE_CONV_2D", "DepthwiseConv2D"
        kernel, options["depthMultiplier"] = kernel.transpose(1, 2, 3, 0), 1
    else:
        operator, kind, kernel = "CONV_2D", "Conv2D", kernel.transpose(0, 2, 3, 1)
        if kernel.shape[-1] != x.shape[-1]:
            raise ValueError("its weights are of other channels")
    weights = [graph.constant(np.float32(array)) for array in (kernel, bias)]
    shape = slid(x, size, stride, outputs)
    x = graph.add(operator, [x, *weights], shape, kind, **options)
    if ACTIVATION in values:
        if values[ACTIVATION] != LEAKY:
            raise ValueError("its activation is not leaky")
        slope = values[SLOPE][0]
        x = graph.add("LEAKY_RELU", [x], x.shape, "LeakyRelu", alpha=slope)
    return [x]


def pooling(graph, layer, x):
    """The greatest value in a window, of 3 x 3 with one more row on each side."""
    values = layer.values
    if values.get(0, 0) != 0 or values.get(3) != 1:
        raise ValueError("it is no maximum of 3 x 3")
    size, stride = values[1], values[2]
    x = padded(graph, x, 1, -1e30)
    options = {"padding": VALID, "strideW": stride, "strideH": stride}
    options |= {"filterWidth": size, "filterHeight": size}
    shape = slid(x, size, stride, x.shape[-1])
    return [graph.add("MAX_POOL_2D", [x], shape, "Pool2D", **options)]


def shuffle(graph, layer, x):
    """Channels of several groups, in turn."""
    groups = layer.values.get(0, 1)
    _, height, width, channels = x.shape
    parts = height * width, groups, channels // groups
    turned = graph.constant(np.int32([0, 2, 1]))
    shape = parts[0], parts[2], parts[1]
    y = reshaped(graph, x, parts)
    y = graph.add("TRANSPOSE", [y, turned], shape, "Transpose")
    return [reshaped(graph, y, x.shape)]


def parts(graph, layer, x):
    """Parts of the channels."""
    sizes, left = [], x.shape[-1]
    for i, size in enumerate(layer.values[0]):
        even = left // (len(layer.values[0]) - i)
        sizes.append(even if size == EVEN else int(size))
        left -= sizes[-1]
    shapes = [(*x.shape[:-1], size) for size in sizes]
    inputs = [x, graph.constant(np.int32(sizes)), graph.constant(np.int32(3))]
    return graph.add_all("SPLIT_V", inputs, shapes, "SplitV", numSplits=len(sizes))


def enlarged(graph, layer, x):
    """A grid of twice the height and width, bilinear."""
    values = layer.values
    if (values.get(0), values.get(1), values.get(2), values.get(6, 0)) != (2, 2, 2, 0):
        raise ValueError("it does not enlarge by two")
    size = 2 * x.shape[1], 2 * x.shape[2]
    inputs, shape = [x, graph.constant(np.int32(size))], (1, *size, x.shape[-1])
    options = {"halfPixelCenters": True}
    return [graph.add("RESIZE_BILINEAR", inputs, shape, "ResizeBilinear", **options)]


def added(graph, layer, x, y):
    """The sum of two grids."""
    if layer.values.get(0, 0) != 0 or x.shape != y.shape:
        raise ValueError("it is no sum")
    return [graph.add("ADD", [x, y], x.shape, "Add")]


WRITERS = {
    "Convolution": convolution,
    "ConvolutionDepthWise": convolution,
    "Pooling": pooling,
    "Split": lambda graph, layer, x: [x] * len(layer.outputs),
    "Concat": lambda graph, layer, *x: [joined(graph, x, 3)],
    "ShuffleChannel": shuffle,
    "Slice": parts,
    "Interp": enlarged,
    "BinaryOp": added,
    "Sigmoid": lambda graph, layer, x: [graph.add("LOGISTIC", [x], x.shape)],
    "Permute": lambda graph, layer, x: [x],  # of outputs that are read before it
}
