"""Networks in files of ONNX: nodes and constants, without ONNX's packages."""

import functools
import pathlib
from typing import Any, NamedTuple

import numpy as np

from keras_caption.base.errors import InputError
from keras_caption.formats.faults import check_file, reading
from keras_caption.formats.messages import message_class

MAX_BYTES = 2**30
MAX_NODES = 10_000
# Fields of onnx.proto, by message: name, number and type.
FIELDS = {
    "Model": (("graph", 7, "Graph"),),
    "Graph": (
        ("node", 1, "repeated Node"),
        ("initializer", 5, "repeated Tensor"),
        ("input", 11, "repeated Value"),
        ("output", 12, "repeated Value"),
    ),
    "Node": (
        ("input", 1, "repeated string"),
        ("output", 2, "repeated string"),
        ("op_type", 4, "string"),
        ("attribute", 5, "repeated Attribute"),
    ),
    "Attribute": (
        ("name", 1, "string"),
        ("f", 2, "float"),
        ("i", 3, "int64"),
        ("s", 4, "bytes"),
        ("ints", 8, "repeated int64"),
        ("type", 20, "int32"),
    ),
    "Tensor": (
        ("dims", 1, "repeated int64"),
        ("data_type", 2, "int32"),
        ("name", 8, "string"),
        ("raw_data", 9, "bytes"),
    ),
    "Value": (("name", 1, "string"), ("type", 2, "Type")),
    "Type": (("tensor_type", 1, "TensorType"),),
    "TensorType": (("shape", 2, "Shape"),),
    "Shape": (("dim", 1, "repeated Dimension"),),
    "Dimension": (("dim_value", 1, "int64"),),
}
DTYPES = {1: "<f4", 7: "<i8"}  # of the constants that are read
KINDS = {1: "f", 2: "i", 3: "s", 7: "ints"}  # of the attributes that are read


class OnnxNode(NamedTuple):
    """An operation.

    Attributes:
        kind: str, name of the operator.
        inputs, outputs: Lists of str, names of what it reads and makes; an input that
            is left out is empty.
        values: dict from the name of an attribute to int, float, str or a list of int.
    """

    kind: str
    inputs: list[str]
    outputs: list[str]
    values: dict[str, Any]


class OnnxGraph(NamedTuple):
    """A network.

    Attributes:
        inputs: dict from the name of an input to its shape, a tuple of int, 0 where it
            is not fixed.
        outputs: List of str, names of the outputs.
        nodes: List of `OnnxNode`, each after those whose outputs it reads.
        constants: dict from a name to float32 or int64.
    """

    inputs: dict[str, tuple[int, ...]]
    outputs: list[str]
    nodes: list[OnnxNode]
    constants: dict[str, np.ndarray]


def read_onnx(path: pathlib.Path) -> OnnxGraph:
    """Reads a network whose constants are in the file, as exporters write them.

    Raises:
        InputError: If the file is missing or damaged, or has constants of other types.
    """
    check_file(path, MAX_BYTES)
    with reading(path):
        graph = _model_class().FromString(path.read_bytes()).graph
        if not graph.node:
            raise InputError(f"{path} is no file of ONNX.")
        if len(graph.node) > MAX_NODES:
            raise InputError(f"{path} has more than {MAX_NODES:,} nodes.")
        constants = {x.name: array_of(x) for x in graph.initializer}
        nodes = [
            OnnxNode(
                x.op_type,
                [*x.input],
                [*x.output],
                {a.name: value_of(a) for a in x.attribute},
            )
            for x in graph.node
        ]
        inputs = {
            x.name: tuple(d.dim_value for d in x.type.tensor_type.shape.dim)
            for x in graph.input
            if x.name not in constants
        }
        return OnnxGraph(inputs, [x.name for x in graph.output], nodes, constants)


def array_of(tensor: Any) -> np.ndarray:
    """The array of a constant."""
    if tensor.data_type not in DTYPES:
        raise ValueError(f"the constant {tensor.name} is of a type that is not read")
    array = np.frombuffer(tensor.raw_data, DTYPES[tensor.data_type])
    return array.reshape(tensor.dims)


def value_of(attribute: Any) -> Any:
    """The value of an attribute, or `None` of a type that is not read."""
    if attribute.type not in KINDS:
        return None
    value = getattr(attribute, KINDS[attribute.type])
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, int | float) else [*value]


@functools.cache
def _model_class():
    return message_class(FIELDS, "Model")
