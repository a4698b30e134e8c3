"""Networks in ncnn's files: layers as text, and their weights."""

import pathlib
from typing import Any, NamedTuple

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.suffixes import suffix_of

MAGIC = "7767517"
INT8, FLOAT16, FLOAT32 = 0x000D4B38, 0x01306B47, 0  # marks before weights
WEIGHTED = ("Convolution", "ConvolutionDepthWise")
# Numbers of parameters of convolutions.
OUTPUTS, BIAS, SIZE, GROUP, SCALES = 0, 5, 6, 7, 8
MAX_BYTES = 2**30
MAX_LAYERS = 10_000


class NcnnLayer(NamedTuple):
    """A layer of a network.

    Attributes:
        kind, name: str.
        inputs, outputs: Lists of str, names of what it reads and makes.
        values: dict from the number of a parameter to int, float or a list of float.
        weights: float32 `(outputs, inputs of a group * height * width)`, or `None`.
        bias: float32 `(outputs,)`, or `None`.
    """

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    values: dict[int, Any]
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None


def read_ncnn(path: pathlib.Path) -> list[NcnnLayer]:
    """Reads a network whose weights are convolutions'.

    Weights of int8 become floats, divided by the scales of their outputs; scales of
    activations are not read.

    Args:
        path: `pathlib.Path` of the `.param` file; the `.bin` file is beside it.

    Raises:
        InputError: If a file is missing or damaged.
    """
    if suffix_of(path) != ".param":
        raise InputError(f"{path} should be a .param file of ncnn.")
    weights = path.with_suffix(".bin")
    for file in path, weights:
        check_file(file, MAX_BYTES)
    with reading(path):
        lines = path.read_text(encoding="utf-8").splitlines()
        if lines[:1] != [MAGIC]:
            raise InputError(f"{path} is no .param file of ncnn.")
        layers = [layer_of(line) for line in lines[2:] if line.strip()]
        if len(layers) > MAX_LAYERS:
            raise InputError(f"{path} has more than {MAX_LAYERS:,} layers.")
    with reading(weights):
        content = memoryview(weights.read_bytes())
        at, read = 0, []
        for layer in layers:
            if layer.kind in WEIGHTED:
                layer, at = with_weights(layer, content, at)
            read.append(layer)
        if at != len(content):
            raise InputError(
                f"{weights} has {len(content):,} bytes, and the layers of {path} "
                f"{at:,}."
            )
    return read


def layer_of(line: str) -> NcnnLayer:
    """A layer, without weights, of its line."""
    kind, name, inputs, outputs, *rest = line.split()
    first, last = int(inputs), int(inputs) + int(outputs)
    values = dict(value_of(text) for text in rest[last:])
    return NcnnLayer(kind, name, rest[:first], rest[first:last], values)


def value_of(text: str) -> tuple[int, Any]:
    """The number of a parameter and its value; of lists, the number is negative."""
    number, _, value = text.partition("=")
    key = int(number)
    if key <= -23300:
        return -23300 - key, [float(x) for x in value.split(",")[1:]]
    return key, float(value) if "." in value or "e" in value else int(value)


def with_weights(
    layer: NcnnLayer, content: memoryview, at: int
) -> tuple[NcnnLayer, int]:
    """A convolution with its weights, and where they end in the file."""
    values = layer.values
    outputs, count = values[OUTPUTS], values[SIZE]

    def numbers(dtype, count):
        nonlocal at
        size = np.dtype(dtype).itemsize * count
        if at + size > len(content):
            raise ValueError(f"it ends within the weights of {layer.name}")
        found = np.frombuffer(content, dtype, count, at)
        at += -(-size // 4) * 4  # in words of four bytes
        return found

    mark = int(numbers("<u4", 1)[0])
    dtypes = {INT8: "i1", FLOAT16: "<f2", FLOAT32: "<f4"}
    if mark not in dtypes:
        raise ValueError(f"the weights of {layer.name} are of an unknown kind")
    weights = numbers(dtypes[mark], count).astype("float32").reshape(outputs, -1)
    bias = numbers("<f4", outputs) if values.get(BIAS) else None
    scaled = values.get(SCALES, 0)
    if scaled:
        # Of each output, or, of convolutions by group, of each group or of all.
        groups = values.get(GROUP, outputs)
        scales = numbers("<f4", 1 if scaled % 100 == 2 and GROUP in values else groups)
        numbers("<f4", 1)  # of the inputs
        if scaled > 100:
            numbers("<f4", 1)  # of the outputs
        if mark == INT8:
            weights = weights / np.broadcast_to(scales, outputs)[:, None]
    return layer._replace(weights=weights, bias=bias), at
