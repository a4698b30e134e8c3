import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from keras_caption.errors import InputError

DEFAULT = "serving_default"  # name of the signature that requests need not name


class Signature:
    """A function of named tensors that a server offers.

    Args:
        inputs: dict from name to `tf.TensorSpec`, whose first dimension is the batch.
        defaults: dict from name to array `(1,)`, values of inputs that a request may
            omit.
        trace: Function without arguments that returns a
            `tf.types.experimental.ConcreteFunction` of keywords. It is called once, at
            the first use.
        outputs: dict from name to `tf.TensorSpec`. If omitted, the outputs are known
            only after tracing, which takes seconds.
    """

    def __init__(
        self,
        inputs: dict[str, tf.TensorSpec],
        defaults: dict[str, np.ndarray],
        trace: Callable[[], Any],
        outputs: dict[str, tf.TensorSpec] | None = None,
    ):
        self.inputs = inputs
        self.defaults = defaults
        self._trace = trace
        self._outputs = outputs
        self._lock = threading.Lock()

    @functools.cached_property
    def function(self) -> Any:
        return self._trace()

    @property
    def outputs(self) -> dict[str, tf.TensorSpec]:
        """Specs of the outputs, by name."""
        if self._outputs is not None:
            return self._outputs
        with self._lock:
            return self.function.structured_outputs

    def check_names(self, names: set[str]) -> None:
        """Raises `InputError` if names of inputs are unknown or missing."""
        takes = f"the signature takes {', '.join(self.inputs)}"
        for name in sorted(names - {*self.inputs}):
            raise InputError(f"There is no input {name!r:.60}: {takes}.")
        for name in sorted({*self.inputs} - {*self.defaults} - names):
            raise InputError(f"The input {name!r} is missing: {takes}.")

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls the function with a batch, and returns NumPy arrays."""
        values = {**self.defaults, **batch}
        tensors = {
            name: tf.constant(values[name], spec.dtype)
            for name, spec in self.inputs.items()
        }
        with self._lock:  # two threads would trace the function twice
            function = self.function
        return {name: x.numpy() for name, x in function(**tensors).items()}

    def warm_up(self) -> None:
        """Runs the function once, on one example of zeros."""
        batch = {
            name: np.full(
                [1 if size is None else size for size in spec.shape],
                b"" if spec.dtype == tf.string else 0,
                spec.dtype.as_numpy_dtype,
            )
            for name, spec in self.inputs.items()
            if name not in self.defaults
        }
        self(batch)

    def to_json(self, name: str) -> dict[str, Any]:
        """Describes the signature `name` as TensorFlow's `SignatureDef`, for JSON."""
        return {
            "inputs": {x: tensor_info(name, x, s) for x, s in self.inputs.items()},
            "outputs": {x: tensor_info(name, x, s) for x, s in self.outputs.items()},
            "method_name": "tensorflow/serving/predict",
        }


def tensor_info(signature: str, name: str, spec: Any) -> dict[str, Any]:
    """Describes a tensor as TensorFlow's `TensorInfo`, for JSON."""
    is_unknown = spec.shape.rank is None
    sizes = [] if is_unknown else spec.shape.as_list()
    return {
        "dtype": types_pb2.DataType.Name(spec.dtype.as_datatype_enum),
        "tensor_shape": {
            "dim": [{"size": str(-1 if s is None else s), "name": ""} for s in sizes],
            "unknown_rank": is_unknown,
        },
        "name": f"{signature}_{name}:0",
    }
