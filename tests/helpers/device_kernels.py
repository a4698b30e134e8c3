"""What of a traced graph a GPU cannot run, read without a GPU.

TensorFlow's package for Linux registers its kernels for GPUs on every machine.
"""

import dataclasses
import functools

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels

LOOPS = ("While", "StatelessWhile")
CALLS = ("PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", *LOOPS)
NO_KERNELS = ("NoOp", "Placeholder", "_Arg", "_Retval", *CALLS)
SIZES = ("Const", "Rank", "Shape", "Size")  # which a compiler or the host knows
# Arguments that say where or how large, which the host reads in any case.
SHAPES = {
    "axis",
    "begin",
    "concat_dim",
    "dim",
    "dimension",
    "dims",
    "end",
    "indices_shape",
    "k",
    "multiples",
    "paddings",
    "perm",
    "reduction_indices",
    "repeats",
    "resource",
    "shape",
    "shift",
    "size",
    "split_dim",
    "strides",
}


@dataclasses.dataclass
class Problems:
    """Operations of a graph, as `OP type` each.

    Attributes:
        without_kernel: set, those that no GPU runs, and variables that no GPU holds.
        without_kernel_in_loops: set, those of them that are in loops.
        on_host_in_loops: set, those in loops that work in the host's memory, so that a
            GPU waits for copies in every step; XLA compiles them for the GPU.
    """

    without_kernel: set
    without_kernel_in_loops: set
    on_host_in_loops: set


def problems_of(function):
    """What a GPU cannot run of a `tf.types.experimental.ConcreteFunction`."""
    graph = function.graph.as_graph_def()
    library = {f.signature.name: f.node_def for f in graph.library.function}
    problems = Problems(set(), set(), set())

    def read(nodes, in_loop):
        for node in nodes:
            if node.op in library:
                read(library[node.op], in_loop)
                continue
            for attribute in node.attr.values():
                if attribute.func.name in library:
                    inner = library[attribute.func.name]
                    read(inner, in_loop or node.op in LOOPS)
            if node.op not in NO_KERNELS:
                types = {name: a.type for name, a in node.attr.items() if a.type}
                judge(node.op, types, in_loop)

    def judge(op, types, in_loop=False):
        kernel, named = kernel_of(op, **types), name_of(op, types)
        if kernel is None:
            problems.without_kernel.add(named)
            if in_loop:
                problems.without_kernel_in_loops.add(named)
        elif in_loop and op not in SIZES and {*kernel.host_memory_arg} - SHAPES:
            problems.on_host_in_loops.add(named)

    read(graph.node, False)
    for variable in function.variables:
        judge("VarHandleOp", {"dtype": variable.dtype.base_dtype.as_datatype_enum})
    return problems


def name_of(op, types):
    names = (types_pb2.DataType.Name(x).removeprefix("DT_") for x in types.values())
    return f"{op} {','.join(sorted(names)).lower()}"


@functools.cache
def kernel_of(op, **types):
    """The kernel that runs an operation on a GPU, or `None`."""
    fitting = [
        kernel
        for kernel in kernels_of(op)
        if all(
            c.name not in types or types[c.name] in c.allowed_values.list.type
            for c in kernel.constraint
        )
    ]
    on_gpu = [kernel for kernel in fitting if kernel.device_type == "GPU"]
    return next(iter(on_gpu or fitting), None)


@functools.cache
def kernels_of(op):
    registered = kernels.get_registered_kernels_for_op(op).kernel
    return [k for k in registered if k.device_type in ("GPU", "DEFAULT")]
