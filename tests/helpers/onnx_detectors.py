"""Detectors in files of ONNX that find what is white, as white_yolox does."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

SIZE = 64


def grids(strides, kernels, sizes, sigmoid):
    """A network of one convolution for each stride, `(1, cells, values)`.

    Args:
        strides: Sequence of int.
        kernels: Function from a stride to a kernel `(values, 3, stride, stride)` and
            biases `(values,)`.
        sizes: List of int, in which the values are split.
        sigmoid: int, which of these parts becomes probabilities.
    """
    nodes, constants = [], {"shape": np.int64([1, sum(sizes), -1])}
    for s in strides:
        constants[f"k{s}"], constants[f"b{s}"] = kernels(s)
        pads = [0, 0, -SIZE % s, -SIZE % s]
        nodes += [
            node(
                "Conv",
                ["image", f"k{s}", f"b{s}"],
                [f"c{s}"],
                strides=[s, s],
                pads=pads,
            ),
            node("Reshape", [f"c{s}", "shape"], [f"g{s}"]),
        ]
    constants["sizes"] = np.int64(sizes)
    parts = [f"p{i}" for i in range(len(sizes))]
    nodes += [
        node("Concat", [f"g{s}" for s in strides], ["all"], axis=2),
        node("Transpose", ["all"], ["rows"], perm=[0, 2, 1]),
        node("Split", ["rows", "sizes"], parts, axis=2),
        node("Sigmoid", [parts[sigmoid]], ["chances"]),
        node(
            "Concat",
            [*parts[:sigmoid], "chances", *parts[sigmoid + 1 :]],
            ["output"],
            axis=2,
        ),
    ]
    return nodes, constants, ["output"]


def yolox(category=16):
    """As YOLOX's `export_onnx.py`: pixels of 255 have an object of width 8."""

    def kernels(stride):
        kernel = np.zeros((85, 3, stride, stride), "f4")
        bias = np.r_[0.5, 0.5, 0, 0, np.full(81, -20)].astype("f4")
        bias[5 + category] = 4
        if stride == 8:
            kernel[4] = 20 / (3 * 255 * stride**2)
            bias[4] = -10
        return kernel, bias

    return grids((8, 16, 32), kernels, [4, 81], 1)


def yolox_network(rng):
    """As YOLOX's `export_onnx.py` writes it, with one layer of each kind."""
    nodes, constants = [], {"rows": np.int64([1, 85, -1])}
    last, step = np.int64([2**63 - 1]), np.int64([2])
    for name, value in (("0", [0]), ("1", [1]), ("2", [2]), ("3", [3])):
        constants[name] = np.int64(value)
    constants |= {"last": last, "step": step, "twice": np.float32([1, 1, 2, 2])}
    constants["none"] = np.float32([])

    def add(kind, inputs, output, **values):
        nodes.append(node(kind, inputs, [output], **values))
        return output

    def conv(x, output, channels, outputs, size=1, stride=1, groups=1):
        shape = outputs, channels // groups, size, size
        scale = 1 / np.sqrt(shape[1] * size**2)
        constants[f"k{output}"] = rng.normal(0, scale, shape).astype("f4")
        constants[f"b{output}"] = rng.normal(0, 0.1, outputs).astype("f4")
        values = {"strides": [stride] * 2, "pads": [size // 2] * 4, "group": groups}
        return add("Conv", [x, f"k{output}", f"b{output}"], output, **values)

    def swish(x):
        return add("Mul", [x, add("Sigmoid", [x], f"sigmoid{x}")], f"swish{x}")

    parts = []
    for column in "01":
        for row in "01":
            rows = add("Slice", ["image", row, "last", "2", "step"], f"r{row}{column}")
            bounds = [rows, column, "last", "3", "step"]
            parts.append(add("Slice", bounds, f"part{row}{column}"))
    x = add("Concat", parts, "focus", axis=1)
    scaled = 0.002 * rng.normal(0, 1, (8, 12, 3, 3))  # pixels are up to 255
    x = conv(x, "stem", 12, 8, size=3)
    constants["kstem"] = scaled.astype("f4")
    x = swish(x)
    grids = []
    for stride in (4, 8, 16, 32):
        by_channel = conv(x, f"d{stride}", 8, 8, size=3, stride=2, groups=8)
        x = swish(conv(by_channel, f"p{stride}", 8, 8))
        grids.append(x)
    grids = grids[1:]
    pools = [
        add("MaxPool", [grids[-1]], f"pool{n}", kernel_shape=[n, n], pads=[n // 2] * 4)
        for n in (3, 5)
    ]
    grids[-1] = conv(add("Concat", [grids[-1], *pools], "pools", axis=1), "spp", 24, 8)
    values = {"mode": "nearest", "nearest_mode": "floor"}
    values["coordinate_transformation_mode"] = "asymmetric"
    large = add("Resize", [grids[2], "none", "twice"], "large", **values)
    grids[1] = add("Add", [grids[1], large], "sum")
    rows = []
    for i, grid in enumerate(grids):
        boxes = conv(grid, f"boxes{i}", 8, 4)
        chances = [
            add("Sigmoid", [conv(grid, f"{name}{i}", 8, size)], f"{name}_{i}")
            for name, size in (("object", 1), ("class", 80))
        ]
        whole = add("Concat", [boxes, *chances], f"whole{i}", axis=1)
        rows.append(add("Reshape", [whole, "rows"], f"rows{i}"))
    add("Concat", rows, "all", axis=2)
    add("Transpose", ["all"], "output", perm=[0, 2, 1])
    return nodes, constants, ["output"]


def nanodet(category=16):
    """As NanoDet-Plus's: of white cells, all sides are one stride away."""

    def kernels(stride):
        kernel = np.zeros((112, 3, stride, stride), "f4")
        bias = np.full(112, -20, "f4")
        bias[80:] = np.tile(50.0 * (np.arange(8) == 1), 4)
        if stride == 8:  # a normalized white pixel is more than 2, a black one below 0
            kernel[category] = 5 / (3 * stride**2)
            bias[category] = -6
        return kernel, bias

    return grids((8, 16, 32, 64), kernels, [80, 32], 0)


def detr(classes=92, category=18):
    """Four queries, one of each quarter of the image."""
    kernel = np.zeros((classes, 3, SIZE // 2, SIZE // 2), "f4")
    kernel[category] = 40 / (3 * (SIZE // 2) ** 2) / (1 if classes == 80 else 2)
    bias = np.full(classes, -20, "f4")
    if classes == 92:
        bias[-1] = 20
    centres = np.float32([[0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75]])
    boxes = np.concatenate([centres, np.full((4, 2), 0.5, "f4")], axis=1)[None]
    constants = {"k": kernel, "b": bias, "boxes": boxes}
    constants |= {"shape": np.int64([1, classes, 4])}
    strides = [SIZE // 2] * 2
    nodes = [
        node("Conv", ["image", "k", "b"], ["c"], strides=strides),
        node("Reshape", ["c", "shape"], ["columns"]),
        node("Transpose", ["columns"], ["logits"], perm=[0, 2, 1]),
        node("Identity", ["boxes"], ["pred_boxes"]),
    ]
    return nodes, constants, ["logits", "pred_boxes"]


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs, outputs, **attributes)


def endless():
    """DETR, after a loop whose condition stays true."""
    nodes, constants, outputs = detr()
    kind = onnx.TensorProto
    values = [
        helper.make_tensor_value_info(name, *of)
        for name, *of in (
            ("number", kind.INT64, []),
            ("goes_on", kind.BOOL, []),
            ("state", kind.FLOAT, None),
            ("goes_on_then", kind.BOOL, []),
            ("state_then", kind.FLOAT, None),
        )
    ]
    body = [
        node("Identity", ["goes_on"], ["goes_on_then"]),
        node("Identity", ["state"], ["state_then"]),
    ]
    body = helper.make_graph(body, "body", values[:3], values[3:])
    loop = node("Loop", ["", "always", "boxes"], ["pred_boxes"], body=body)
    constants["always"] = np.array(True)
    return [*nodes[:-1], loop], constants, outputs


def write(path, nodes, constants, outputs, size=SIZE):
    """Writes a network of square images, of 64 pixels unless said otherwise."""
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("image", kind, [1, 3, size, size])],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        [numpy_helper.from_array(x, name) for name, x in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path
