import pathlib
from typing import Any

import numpy as np

from keras_caption.apps.objects.cells import cells_of
from keras_caption.apps.objects.lite_detector import write_description
from keras_caption.apps.objects.suppression import Suppression
from keras_caption.base.atomic import replacing
from keras_caption.base.errors import InputError
from keras_caption.formats.coco_categories import COCO_IDS
from keras_caption.formats.engine_files import DETECTOR_FILES, ENGINE_FILES
from keras_caption.formats.faults import reading
from keras_caption.formats.litert_graph import LiteRTGraph
from keras_caption.formats.onnx_files import read_onnx

STRIDES = (8, 16, 32)  # of grids, in pixels
VALUES = 5 + len(COCO_IDS)  # of a cell
OVERLAP = 0.65  # intersection over union of two objects of a category, at most
MAX_OBJECTS = 36
# A padding and a type of LiteRT.
SAME, VALID, INT32 = 0, 1, 2
# Axes in LiteRT: of grids (1, height, width, channels) and of cells (1, cells, values),
# which ONNX has with the channels or values before.
AXES = {4: {0: 0, 1: 3, 2: 1, 3: 2}, 3: {0: 0, 1: 2, 2: 1}}


def write_yolox(path: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes a YOLOX network of ONNX as a folder for LiteRT, without TensorFlow.

    The network is as YOLOX's `export_onnx.py` writes it. The folder is as
    `keras_caption.serving.export_detector` writes it, and the boxes, scores and
    categories are those of `keras_caption.objects.EngineDetector`.

    Args:
        path: Path of the `.onnx` file.
        folder: Path of the folder, which appears whole or not at all.

    Raises:
        InputError: If the file is missing or damaged, has an unknown operation or other
            outputs, or the package of LiteRT is missing.
    """
    graph = LiteRTGraph()
    size, values = add_network(graph, path)
    outputs = decoded(graph, values, *cells_of(size, STRIDES))
    suppression = Suppression(OVERLAP, by_category=True)
    with replacing(folder, DETECTOR_FILES) as partial:
        partial.mkdir()
        graph.write(partial / ENGINE_FILES["litert"], outputs)
        write_description(partial, "yolox", size, True, MAX_OBJECTS, suppression)


def add_network(graph: Any, path: pathlib.Path) -> tuple[int, Any]:
    """Adds all nodes.

    Args:
        graph: `LiteRTGraph`, or a graph of another library with its operators.
        path: Path of the `.onnx` file.

    Returns:
        The height and width of images, and the node of the values of cells, `(1, cells,
        85)`.
    """
    network = read_onnx(path)
    with reading(path):
        [(name, (_, channels, size, width))] = network.inputs.items()
    if channels != 3 or size != width or size <= 0 or size % STRIDES[-1]:
        raise InputError(
            f"{path} should read an image (1, 3, size, size), its size a multiple of "
            f"{STRIDES[-1]}. Received: {network.inputs[name]}"
        )
    images = graph.input("images", (1, size, size, 3))
    blue_first = graph.add(
        "REVERSE_V2", [images, graph.constant(np.array([3], "int32"))], images.shape
    )
    found = {name: blue_first}
    for node in network.nodes:
        if node.kind not in WRITERS:
            raise InputError(f"{path} has a node {node.kind}, which no YOLOX needs.")
        with reading(f"{path}, of which {node.outputs[0]}"):
            inputs = [
                found[x] if x in found else network.constants.get(x)
                for x in node.inputs
            ]
            [output] = node.outputs
            found[output] = WRITERS[node.kind](graph, node, *inputs)
    cells, _ = cells_of(size, STRIDES)
    values = [found[x] for x in network.outputs if x in found]
    if [x.shape for x in values] != [(1, len(cells), VALUES)]:
        raise InputError(
            f"{path} should return values (1, {len(cells):,}, {VALUES}) of cells, as "
            f"YOLOX does. Received: {', '.join(str(x.shape) for x in values)}"
        )
    return size, values[0]


def decoded(graph, values, cells, strides):
    """The boxes in pixels, and the scores of the best categories with these."""
    count = len(cells)
    sizes = np.int32([2, 2, 1, VALUES - 5])
    inputs = [values, graph.constant(sizes), graph.constant(np.int32(2))]
    shapes = [(1, count, size) for size in sizes]
    centres, halves, objects, chances = graph.add_all(
        "SPLIT_V", inputs, shapes, "SplitV", numSplits=len(sizes)
    )
    centres = binary(graph, "ADD", centres, graph.constant(cells[None]))
    centres = binary(graph, "MUL", centres, graph.constant(strides[None]))
    halves = graph.add("EXP", [halves], halves.shape, "Exp")
    halves = binary(graph, "MUL", halves, graph.constant(strides[None] / 2))
    corners = [binary(graph, x, centres, halves) for x in ("SUB", "ADD")]
    axes = graph.constant(np.int32([2])), graph.constant(np.int32(2))
    shape = (1, count)
    # One object of a cell: the greatest product is that of the greatest chance.
    best = graph.add("REDUCE_MAX", [chances, axes[0]], shape, "Reducer")
    categories = graph.add(
        "ARG_MAX", [chances, axes[1]], shape, "ArgMax", "int32", outputType=INT32
    )
    scores = binary(graph, "MUL", reshaped(graph, objects, shape), best)
    boxes = joined(graph, corners, 2)
    return {"boxes": boxes, "scores": scores, "categories": categories}


OPTIONS = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul"}


def binary(graph, kind, x, y):
    """The sum, difference or product, `y` broadcast to `x`."""
    return graph.add(kind, [x, y], x.shape, OPTIONS[kind])


def reshaped(graph, x, shape):
    return graph.add("RESHAPE", [x, graph.constant(np.int32(shape))], shape, "Reshape")


def joined(graph, parts, axis):
    shape = [*parts[0].shape]
    shape[axis] = sum(x.shape[axis] for x in parts)
    return graph.add("CONCATENATION", parts, tuple(shape), "Concatenation", axis=axis)


# === Nodes: functions of the graph, a node and its inputs to the output ===


def convolution(graph, node, x, kernel, bias):
    """A convolution, of all channels or of each by itself."""
    outputs, _, height, width = kernel.shape
    groups, strides = node.values.get("group", 1), node.values.get("strides", [1, 1])
    if height != width or strides[0] != strides[1]:
        raise ValueError("its windows are no squares")
    if set(node.values.get("dilations", [1])) != {1}:
        raise ValueError("it is dilated")
    x, padding = padded(graph, x, node, height, strides[0])
    options = {"padding": padding, "strideW": strides[1], "strideH": strides[0]}
    if groups == 1:
        kind, name, kernel = "CONV_2D", "Conv2D", kernel.transpose(0, 2, 3, 1)
    elif groups == outputs == x.shape[-1]:
        kind, name = "DEPTHWISE_CONV_2D", "DepthwiseConv2D"
        kernel, options["depthMultiplier"] = kernel.transpose(1, 2, 3, 0), 1
    else:
        raise ValueError("its groups have several channels")
    if groups == 1 and kernel.shape[-1] != x.shape[-1]:
        raise ValueError("its weights are of other channels")
    weights = [
        graph.constant(np.ascontiguousarray(a, "float32")) for a in (kernel, bias)
    ]
    shape = slid(x, padding, height, strides[0], outputs)
    return graph.add(kind, [x, *weights], shape, name, **options)


def pooling(graph, node, x):
    """The greatest values in windows around each cell."""
    [size, width], strides = node.values["kernel_shape"], node.values.get("strides")
    if size != width or strides not in (None, [1, 1]):
        raise ValueError("its windows are no squares, or not around each cell")
    x, padding = padded(graph, x, node, size, 1)
    if padding != SAME:
        raise ValueError("it makes grids of another size")
    options = {"padding": padding, "strideW": 1, "strideH": 1}
    options |= {"filterWidth": size, "filterHeight": size}
    return graph.add("MAX_POOL_2D", [x], x.shape, "Pool2D", **options)


def padded(graph, x, node, size, stride):
    """A grid with the zeros around it that a node asks for, and its further padding."""
    pads = node.values.get("pads", [0, 0, 0, 0])
    if stride == 1 and size % 2 and pads == [size // 2] * 4:
        return x, SAME
    top, left, bottom, right = pads
    if not any(pads):
        return x, VALID
    _, height, width, channels = x.shape
    shape = (1, top + height + bottom, left + width + right, channels)
    sides = graph.constant(np.int32([[0, 0], [top, bottom], [left, right], [0, 0]]))
    return graph.add("PAD", [x, sides], shape, "Pad"), VALID


def slid(x, padding, size, stride, channels):
    """The shape of what windows over a grid compute."""
    if padding == SAME:
        return (*x.shape[:3], channels)
    height, width = ((n - size) // stride + 1 for n in x.shape[1:3])
    return 1, height, width, channels


def part(graph, node, x, starts, ends, axes, steps=None):
    """Every few rows, columns or channels of a part of a grid."""
    begin, end, step = [0] * 4, [*x.shape], [1] * 4
    steps = np.ones(len(axes), "int64") if steps is None else steps
    for values in zip(axes, starts, ends, steps, strict=True):
        axis, first, last, every = map(int, values)
        axis = AXES[4][axis]
        if not (0 <= first < last and every > 0):
            raise ValueError("it counts from the end")
        begin[axis], end[axis], step[axis] = first, min(last, x.shape[axis]), every
    shape = tuple(len(range(*bounds)) for bounds in zip(begin, end, step, strict=True))
    bounds = [graph.constant(np.int32(values)) for values in (begin, end, step)]
    return graph.add("STRIDED_SLICE", [x, *bounds], shape, "StridedSlice")


def concatenation(graph, node, *parts):
    """Grids along their channels, or the cells of several grids."""
    axes = AXES[len(parts[0].shape)]
    return joined(graph, parts, axes[node.values["axis"] % len(axes)])


def enlarged(graph, node, x, roi, scales, *sizes):
    """A grid of several times the height and width, each cell repeated."""
    times = [int(scale) for scale in scales]
    values = node.values
    if (
        sizes
        or list(scales) != times
        or times[:2] != [1, 1]
        or values.get("mode", "nearest") != "nearest"
        or values.get("coordinate_transformation_mode") != "asymmetric"
        or values.get("nearest_mode") != "floor"
    ):
        raise ValueError("it does not repeat cells")
    size = x.shape[1] * times[2], x.shape[2] * times[3]
    return graph.add(
        "RESIZE_NEAREST_NEIGHBOR",
        [x, graph.constant(np.int32(size))],
        (1, *size, x.shape[-1]),
        "ResizeNearestNeighbor",
    )


def rows_of_cells(graph, node, x, shape):
    """The cells of a grid, row by row."""
    _, height, width, channels = x.shape
    if list(shape) not in ([1, channels, -1], [1, channels, height * width]):
        raise ValueError("it makes no rows of cells")
    return reshaped(graph, x, (1, height * width, channels))


def turned(graph, node, x):
    """Cells with their values behind, as LiteRT has them."""
    if node.values.get("perm") != [0, 2, 1] or len(x.shape) != 3:
        raise ValueError("it does not exchange cells and values")
    return x


def elementwise(kind):
    def write(graph, node, x, y):
        if x.shape != y.shape:
            raise ValueError("its grids have several sizes")
        return binary(graph, kind, x, y)

    return write


WRITERS = {
    "Conv": convolution,
    "MaxPool": pooling,
    "Slice": part,
    "Concat": concatenation,
    "Resize": enlarged,
    "Reshape": rows_of_cells,
    "Transpose": turned,
    "Add": elementwise("ADD"),
    "Mul": elementwise("MUL"),
    "Sigmoid": lambda graph, node, x: graph.add("LOGISTIC", [x], x.shape),
}
