import pathlib
from typing import Any, NamedTuple

import numpy as np

from keras_caption.base.errors import missing_extras

SCHEMA_VERSION = 3
PRODUCER = "keras_caption"
SIGNATURE = "tokens"  # that of `keras_caption.serving.export_engine` too


class Node(NamedTuple):
    """A tensor of a `LiteRTGraph`.

    Attributes:
        index: int, its place among the graph's tensors.
        shape: tuple of int.
    """

    index: int  # type: ignore[assignment]  # typeshed's `tuple` has a method
    shape: tuple[int, ...]


class LiteRTGraph:
    """A network of fixed shapes, written to a file of LiteRT without TensorFlow.

    The package of LiteRT has the classes of its files, by the names of its operators:

        graph = LiteRTGraph()
        x = graph.input("images", (1, 4))
        y = graph.add("MUL", [x, graph.constant(np.float32(2))], (1, 4), "Mul")
        graph.write(path, {"doubled": y})

    Raises:
        InputError: If the package of LiteRT is missing.
    """

    def __init__(self):
        with missing_extras():
            import flatbuffers
            from ai_edge_litert import schema_py_generated as schema
        self._builder, self._schema = flatbuffers.Builder(2**20), schema
        self._dtypes = {
            np.dtype("float32"): schema.TensorType.FLOAT32,
            np.dtype("int32"): schema.TensorType.INT32,
        }
        self._graph, self._codes = schema.SubGraphT(), {}
        self._graph.tensors, self._graph.operators = [], []
        self._buffers, self._inputs = [schema.BufferT()], {}  # the first is empty

    def input(self, name: str, shape: tuple[int, ...]) -> Node:
        """Adds an input of float32."""
        self._inputs[name] = node = self._tensor(shape, "float32")
        return node

    def constant(self, value: Any) -> Node:
        """Adds an array of float32 or int32."""
        value = np.asarray(value)
        buffer = self._schema.BufferT()
        buffer.data = np.frombuffer(value.tobytes(), "uint8")
        self._buffers.append(buffer)
        return self._tensor(value.shape, value.dtype, len(self._buffers) - 1)

    def add(
        self,
        operator: str,
        inputs: list[Node],
        shape: tuple[int, ...],
        options: str | None = None,
        dtype: str = "float32",
        **values: Any,
    ) -> Node:
        """Adds an operator of one output.

        Args:
            operator: str, its name in `BuiltinOperator`.
            inputs: List of `Node`.
            shape: tuple of int, shape of the output.
            options: str, name of the class of its options before `OptionsT`, if it
                has any.
            dtype: str, of the output.
            **values: Values of the options, others are those of the class.
        """
        return self.add_all(operator, inputs, [shape], options, dtype, **values)[0]

    def add_all(
        self,
        operator: str,
        inputs: list[Node],
        shapes: list[tuple[int, ...]],
        options: str | None = None,
        dtype: str = "float32",
        **values: Any,
    ) -> list[Node]:
        """Adds an operator of several outputs, see `add`."""
        schema = self._schema
        added = schema.OperatorT()
        added.opcodeIndex = self._codes.setdefault(operator, len(self._codes))
        added.inputs = [node.index for node in inputs]
        outputs = [self._tensor(shape, dtype) for shape in shapes]
        added.outputs = [node.index for node in outputs]
        if options is not None:
            added.builtinOptionsType = getattr(
                schema.BuiltinOptions, f"{options}Options"
            )
            added.builtinOptions = getattr(schema, f"{options}OptionsT")()
            for name, value in values.items():
                setattr(added.builtinOptions, name, value)
        self._graph.operators.append(added)
        return outputs

    def write(self, path: pathlib.Path, outputs: dict[str, Node]) -> None:
        """Writes the file; its signature has the names of inputs and outputs."""
        schema, graph = self._schema, self._graph
        graph.inputs = [node.index for node in self._inputs.values()]
        graph.outputs = [node.index for node in outputs.values()]
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = SIGNATURE, 0
        signature.inputs = self._named(self._inputs)
        signature.outputs = self._named(outputs)
        model = schema.ModelT()
        model.version, model.description = SCHEMA_VERSION, PRODUCER
        model.buffers, model.subgraphs = self._buffers, [graph]
        model.signatureDefs = [signature]
        model.operatorCodes = [self._code(name) for name in self._codes]
        self._builder.Finish(model.Pack(self._builder), b"TFL3")
        path.write_bytes(self._builder.Output())

    def _tensor(self, shape, dtype, buffer=0):
        tensor = self._schema.TensorT()
        tensor.shape, tensor.buffer = [*shape], buffer
        tensor.type = self._dtypes[np.dtype(dtype)]
        tensor.name = f"t{len(self._graph.tensors)}"
        self._graph.tensors.append(tensor)
        return Node(len(self._graph.tensors) - 1, tuple(shape))

    def _named(self, nodes):
        named = []
        for name, node in nodes.items():
            entry = self._schema.TensorMapT()
            entry.name, entry.tensorIndex = name, node.index
            named.append(entry)
        return named

    def _code(self, name):
        code, number = (
            self._schema.OperatorCodeT(),
            getattr(self._schema.BuiltinOperator, name),
        )
        code.builtinCode = number
        code.deprecatedBuiltinCode = min(number, 127)  # a byte, in older readers
        code.version = 1
        return code
